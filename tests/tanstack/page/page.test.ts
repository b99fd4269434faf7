// What the page shows is run against what the page builds.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mock, test } from "node:test";
import { requestRunCancel } from "@tanstack/ai";
import { alive, drive } from "./driving.js";
import { interrupts, runs } from "./stores.js";

const USAGE = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };

async function started() {
  const [runId, threadId] = [randomUUID(), randomUUID()];
  await runs.createOrResume({ runId, threadId, startedAt: Date.now() });
  return { runId, threadId };
}

async function stopped(signal: AbortSignal) {
  for (const until = Date.now() + 10_000; !signal.aborted;) {
    assert.ok(Date.now() < until, "the driver was not stopped");
    mock.timers.tick(15_000);
    await new Promise((done) => setTimeout(done, 50));
  }
  signal.throwIfAborted();
}

const silent = async (runId: string) =>
  (await runs.listStalled({ ttlMs: 1000 })).some((run) => run.runId === runId);

test("a run that is driven is completed", async () => {
  const { runId, threadId } = await started();
  const work = async () => {
    assert.equal((await runs.findActiveRun(threadId))?.driverEpoch, 1);
    return USAGE;
  };
  assert.equal(await drive(runId, work), "completed");
  const run = await runs.get(runId);
  assert.deepEqual([run?.status, run?.usage], ["completed", USAGE]);
  assert.equal(await drive(runId, work), "terminal");
});

test("work that throws fails its run", async () => {
  const { runId } = await started();
  assert.equal(await drive(runId, () => Promise.reject(new Error("broken \ud83d"))), "failed");
  assert.deepEqual((await runs.get(runId))?.error, { message: "broken \ufffd" });
});

test("a cancel is seen by the next sign of life", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    const { runId } = await started();
    const work = async (signal: AbortSignal) => {
      await requestRunCancel(runs, runId);
      await stopped(signal);
      return USAGE;
    };
    assert.equal(await drive(runId, work), "aborted");
    const run = await runs.get(runId);
    assert.deepEqual([run?.status, run?.error], ["aborted", undefined]);
  } finally {
    mock.timers.reset();
  }
});

test("a driver whose run was claimed by another is stopped, and ends nothing", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    const { runId } = await started();
    const work = async (signal: AbortSignal) => {
      await runs.claim(runId);
      await stopped(signal);
      return USAGE;
    };
    assert.equal(await drive(runId, work), "superseded");
    assert.equal((await runs.get(runId))?.status, "running");
  } finally {
    mock.timers.reset();
  }
});

test("a stream that is kept alive claims its run and gives signs of life", async () => {
  mock.timers.enable({ apis: ["setInterval"] });
  try {
    const [runId, threadId] = [randomUUID(), randomUUID()];
    const stream = async function* () {
      assert.equal((await runs.findActiveRun(threadId))?.driverEpoch, 1);
      await new Promise((done) => setTimeout(done, 1200));
      assert.ok(await silent(runId));
      mock.timers.tick(15_000);
      for (const until = Date.now() + 900; await silent(runId);) {
        assert.ok(Date.now() < until, "there was no sign of life");
      }
      yield 1;
    };
    const seen = [];
    for await (const chunk of alive(stream(), runId, threadId)) seen.push(chunk);
    assert.deepEqual(seen, [1]);
  } finally {
    mock.timers.reset();
  }
});

test("a stream of a run that has ended is not begun", async () => {
  const { runId, threadId } = await started();
  await runs.update(runId, { status: "completed" });
  const stream = async function* () {
    assert.fail("it was begun");
  };
  await assert.rejects(alive(stream(), runId, threadId).next(), /terminal/);
});

test("the store of interrupts is there", async () => {
  assert.deepEqual(await interrupts.listPending(randomUUID()), []);
});
