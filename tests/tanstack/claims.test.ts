// Claims, heartbeats and fences, of which the store in memory knows nothing.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { fresh, headersOfAnother, idsOf, runStore, sleep } from "./served.js";

const store = runStore();

async function started() {
  const [runId, threadId] = [fresh("run"), fresh("thread")];
  await store.createOrResume({ runId, threadId, startedAt: 1000 });
  return { runId, threadId };
}

async function claimed(runId: string) {
  const claim = await store.claim(runId);
  assert.ok(claim.held, JSON.stringify(claim));
  return claim;
}

describe("a claim", () => {
  test("counts up, and the record shows it", async () => {
    const { runId } = await started();
    assert.equal((await claimed(runId)).epoch, 1);
    assert.equal((await claimed(runId)).epoch, 2);
    assert.equal((await store.get(runId))?.driverEpoch, 2);
  });

  test("is refused with the reason, and changes nothing", async () => {
    const { runId } = await started();
    const refused = async (id: string, reason: string, conditions = {}) =>
      assert.deepEqual(await store.claim(id, conditions), { held: false, reason });
    await refused(fresh("run"), "unknown");
    await refused(runId, "condition", { detachedBefore: 5000 });
    await store.update(runId, { detachedSince: 5001 });
    await refused(runId, "condition", { detachedBefore: 5000 });
    await refused(runId, "condition", { silentBefore: 5000 });
    await refused(runId, "superseded", { expectedEpoch: 3 });
    assert.equal((await store.get(runId))?.driverEpoch, undefined);
    assert.equal((await store.claim(runId, { detachedBefore: 5001 })).held, true);
    await refused(runId, "superseded", { expectedEpoch: null });
    await store.update(runId, { status: "completed" });
    await refused(runId, "terminal");
    assert.equal((await store.get(runId))?.driverEpoch, 1);
  });

  test("is had of a run that waits for a person", async () => {
    const { runId } = await started();
    await store.update(runId, { status: "interrupted" });
    assert.equal((await claimed(runId)).epoch, 1);
  });

  test("that was lost ends nothing, and what was counted is still written", async () => {
    const { runId } = await started();
    const [first, second] = [await claimed(runId), await claimed(runId)];
    const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };
    assert.equal(await first.update({ status: "completed", finishedAt: 5 }), false);
    assert.equal(await first.update({ usage }), true);
    assert.equal(await first.touch(), false);
    const run = await store.get(runId);
    assert.deepEqual([run?.status, run?.finishedAt, run?.usage], ["running", undefined, usage]);
    assert.equal(await second.touch(), true);
    assert.equal(await second.update({ status: "failed", error: { message: "no" } }), true);
    assert.equal((await store.get(runId))?.status, "failed");
  });

  test("does not revive a run that has ended", async () => {
    const { runId } = await started();
    const claim = await claimed(runId);
    await store.update(runId, { status: "aborted" });
    assert.equal(await claim.update({ status: "running" }), false);
    assert.equal(await claim.touch(), false);
    assert.equal((await store.get(runId))?.status, "aborted");
  });

  test("writes in the order of the calls", async () => {
    const { runId } = await started();
    const claim = await claimed(runId);
    const statuses = ["interrupted", "running", "completed"] as const;
    const wrote = await Promise.all(statuses.map((status) => claim.update({ status })));
    assert.deepEqual(wrote, [true, true, true]);
    assert.equal((await store.get(runId))?.status, "completed");
  });
});

describe("silence", () => {
  test("is found after the time to live, until the next heartbeat", async () => {
    const { runId } = await started();
    const claim = await claimed(runId);
    const asked = { ttlMs: 1_000, now: undefined as unknown as number };
    const stalled = async () => idsOf(await store.listStalled(asked)).includes(runId);
    assert.equal(await stalled(), false);
    await sleep(1_200);
    assert.equal(await stalled(), true);
    assert.equal(await claim.touch(), true);
    assert.equal(await stalled(), false);
    assert.equal(await store.touch(runId, claim.epoch), true);
    assert.equal(await store.touch(runId, claim.epoch - 1), false);
    await claim.update({ status: "completed" });
  });

  test("is none where nobody has claimed", async () => {
    const { runId } = await started();
    const now = Date.now() + 1_000_000;
    assert.ok(!idsOf(await store.listStalled({ ttlMs: 0, now })).includes(runId));
  });
});

test("a cancel asks for nothing else", async () => {
  const { runId, threadId } = await started();
  await store.requestCancel(runId);
  await store.requestCancel(fresh("run"));
  const expected = { runId, threadId, status: "running", startedAt: 1000, cancelRequested: true };
  assert.deepEqual(await store.get(runId), expected);
});

test("the runs that a run has started come in the order of their start", async () => {
  const { runId: parentRunId, threadId } = await started();
  const child = { threadId, parentRunId, name: "researcher", traceId: fresh("trace") };
  const ids = [fresh("child"), fresh("child")];
  for (const [number, runId] of ids.entries()) {
    const startedAt = 20 - 10 * number;
    const run = await store.createOrResume({ ...child, runId, subagentRunId: runId, startedAt });
    assert.deepEqual(run, {
      runId,
      threadId,
      parentRunId,
      subagentRunId: runId,
      name: "researcher",
      status: "running",
      startedAt,
    });
  }
  assert.deepEqual(idsOf(await store.listByParentRun(parentRunId)), ids.reverse());
  assert.deepEqual(await store.listByParentRun(ids[0]!), []);
  const again = await store.createOrResume({ ...child, runId: parentRunId, startedAt: 1 });
  assert.deepEqual([again.parentRunId, again.name], [undefined, undefined]);
});

test("the runs of another user are unknown", async () => {
  const { runId, threadId } = await started();
  await claimed(runId);
  const other = runStore({ headers: headersOfAnother });
  await store.update(runId, { detachedSince: 1 });
  assert.equal(await other.get(runId), null);
  assert.equal(await other.findActiveRun(threadId), null);
  assert.deepEqual(await other.listByThread(threadId), []);
  const now = Date.now() + 1_000_000;
  assert.ok(!idsOf(await other.listReclaimable({ now, ttlMs: 0 })).includes(runId));
  assert.ok(!idsOf(await other.listStalled({ now, ttlMs: 0 })).includes(runId));
  await other.update(runId, { status: "aborted" });
  await other.requestCancel(runId);
  assert.deepEqual(await other.claim(runId), { held: false, reason: "unknown" });
  assert.equal(await other.touch(runId, 1), false);
  const run = await store.get(runId);
  assert.deepEqual(
    [run?.status, run?.cancelRequested, run?.driverEpoch],
    ["running", undefined, 1],
  );
  await other.createOrResume({ runId, threadId: "theirs", startedAt: 7 });
  assert.equal((await other.get(runId))?.threadId, "theirs");
  assert.equal((await store.get(runId))?.threadId, threadId);
});

// A Node process of its own: it claims what it is told to, when it is told to.
function claimer() {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.resolve("./claimer.js"))], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    ready: async () => assert.equal((await lines.next()).value, "ready"),
    claim: async (runId: string, expectedEpoch?: number | null) => {
      child.stdin.write(`${JSON.stringify({ runId, expectedEpoch })}\n`);
      return JSON.parse((await lines.next()).value) as { held: boolean; epoch?: number };
    },
    stop: async () => {
      child.stdin.end();
      await once(child, "exit");
    },
  };
}

describe("two processes that claim at once", () => {
  test("never get the same number, and of two that expect the same one is refused", async () => {
    const [one, two] = [claimer(), claimer()];
    try {
      await Promise.all([one.ready(), two.ready()]);
      const { runId } = await started();
      for (let round = 0; round < 25; round++) {
        const claims = await Promise.all([one.claim(runId), two.claim(runId)]);
        assert.deepEqual(
          claims.map((claim) => claim.epoch).sort((a, b) => a! - b!),
          [2 * round + 1, 2 * round + 2],
        );
      }
      for (let round = 0; round < 25; round++) {
        const fought = (await started()).runId;
        const claims = await Promise.all([one.claim(fought, null), two.claim(fought, null)]);
        assert.deepEqual(claims.map((claim) => claim.held).sort(), [false, true]);
        assert.equal((await store.get(fought))?.driverEpoch, 1);
      }
    } finally {
      await Promise.all([one.stop(), two.stop()]);
    }
  });
});
