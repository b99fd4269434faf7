// What TanStack AI expects of a RunStore. Each case runs over its own store in memory too, so that
// the cases themselves are checked against the original.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  InMemoryRunStore,
  requestRunCancel,
  wasCancelRequested,
  type RunStore,
} from "@tanstack/ai";
import { fresh, idsOf, runStore } from "./served.js";

type Store = Required<RunStore>;

const STORES: Record<string, () => Store> = {
  "the store in memory": () => new InMemoryRunStore(),
  "the store in Django": () => runStore(),
};

const DRIVER_FIELDS = ["sandboxKey", "detachedSince", "cancelRequested", "driverEpoch"] as const;

const USAGE = {
  promptTokens: 3,
  completionTokens: 4,
  totalTokens: 7,
  promptTokensDetails: { cachedTokens: 1 },
};

async function started(store: Store, startedAt = 1000, threadId = fresh("thread")) {
  const runId = fresh("run");
  await store.createOrResume({ runId, threadId, startedAt });
  return { runId, threadId };
}

for (const [name, make] of Object.entries(STORES)) {
  describe(name, () => {
    const store = make();

    test("a run that is not there is null", async () => {
      assert.equal(await store.get(fresh("run")), null);
      assert.equal(await store.findActiveRun(fresh("thread")), null);
      assert.deepEqual(await store.listByThread(fresh("thread")), []);
    });

    test("a new run is running, and has what it was given and nothing else", async () => {
      const [runId, threadId] = [fresh("run"), fresh("thread")];
      const expected = { runId, threadId, status: "running", startedAt: 1000 };
      assert.deepEqual(await store.createOrResume({ runId, threadId, startedAt: 1000 }), expected);
      assert.deepEqual(await store.get(runId), expected);
    });

    test("a run can be created with a status", async () => {
      const [runId, threadId] = [fresh("run"), fresh("thread")];
      const input = { runId, threadId, startedAt: 1, status: "interrupted" } as const;
      assert.equal((await store.createOrResume(input)).status, "interrupted");
      assert.equal(await store.findActiveRun(threadId), null);
    });

    test("a second create gives the first run, and is otherwise ignored", async () => {
      const { runId, threadId } = await started(store);
      const other = {
        runId,
        threadId: fresh("thread"),
        startedAt: 9999,
        status: "failed",
      } as const;
      const again = await store.createOrResume(other);
      assert.deepEqual(again, { runId, threadId, status: "running", startedAt: 1000 });
      assert.deepEqual(await store.get(runId), again);
      assert.deepEqual(await store.listByThread(other.threadId), []);
    });

    test("create never revives a run that has ended", async () => {
      const { runId, threadId } = await started(store, 10);
      await store.update(runId, { status: "completed", finishedAt: 20 });
      const ended = { runId, threadId, status: "completed", startedAt: 10, finishedAt: 20 };
      const input = { runId, threadId, startedAt: 999, status: "running" } as const;
      assert.deepEqual(await store.createOrResume(input), ended);
      assert.deepEqual(await store.get(runId), ended);
      assert.equal(await store.findActiveRun(threadId), null);
    });

    test("an end is read back with its time and its usage", async () => {
      const { runId, threadId } = await started(store);
      await store.update(runId, { status: "completed", finishedAt: 2000, usage: USAGE });
      assert.deepEqual(await store.get(runId), {
        runId,
        threadId,
        status: "completed",
        startedAt: 1000,
        finishedAt: 2000,
        usage: USAGE,
      });
    });

    test("a completed run may fail after all, and says why", async () => {
      const { runId } = await started(store);
      await store.update(runId, { status: "completed", finishedAt: 2000 });
      const error = { message: "The model is overloaded.", code: "overloaded" };
      await store.update(runId, { status: "failed", error });
      const run = await store.get(runId);
      assert.deepEqual([run?.status, run?.error, run?.finishedAt], ["failed", error, 2000]);
    });

    test("a failure may have no code", async () => {
      const { runId } = await started(store);
      await store.update(runId, { status: "failed", error: { message: "" } });
      assert.deepEqual((await store.get(runId))?.error, { message: "" });
    });

    test("updating a run that is not there neither throws nor creates it", async () => {
      for (const status of ["running", "completed"] as const) {
        const runId = fresh("run");
        await store.update(runId, { status });
        assert.equal(await store.get(runId), null);
      }
    });

    test("an interrupted run goes on, and is active again", async () => {
      const { runId, threadId } = await started(store);
      await store.update(runId, { status: "interrupted" });
      assert.equal(await store.findActiveRun(threadId), null);
      await store.update(runId, { status: "running" });
      assert.equal((await store.findActiveRun(threadId))?.runId, runId);
    });

    test("the active run is the newest that runs, and the older one when that ends", async () => {
      const threadId = fresh("thread");
      const newer = await started(store, 2000, threadId);
      const older = await started(store, 1000, threadId);
      await started(store, 3000);
      assert.equal((await store.findActiveRun(threadId))?.runId, newer.runId);
      await store.update(newer.runId, { status: "completed" });
      assert.equal((await store.findActiveRun(threadId))?.runId, older.runId);
      await store.update(older.runId, { status: "aborted" });
      assert.equal(await store.findActiveRun(threadId), null);
    });

    test("of two active runs that started together it is the first", async () => {
      const threadId = fresh("thread");
      const first = await started(store, 1000, threadId);
      await started(store, 1000, threadId);
      assert.equal((await store.findActiveRun(threadId))?.runId, first.runId);
    });

    test("a detached run and one that is asked to stop are active", async () => {
      const { runId, threadId } = await started(store);
      await store.update(runId, { detachedSince: 5, cancelRequested: true });
      assert.equal((await store.findActiveRun(threadId))?.runId, runId);
    });

    test("the runs of a thread come in the order of their start", async () => {
      const threadId = fresh("thread");
      const runs = [];
      for (const start of [30, 20, 10]) runs.unshift(await started(store, start, threadId));
      await store.update(runs[1]!.runId, { status: "failed" });
      assert.deepEqual(
        idsOf(await store.listByThread(threadId)),
        runs.map((run) => run.runId),
      );
    });

    test("reclaimable is what runs and was left by then, to the millisecond", async () => {
      const at: Record<string, number | undefined> = {
        past: 100,
        exactly: 500,
        recent: 501,
        watched: undefined,
        ended: 100,
        interrupted: 100,
      };
      const runs: Record<string, string> = {};
      for (const [which, detachedSince] of Object.entries(at)) {
        const { runId } = await started(store);
        runs[which] = runId;
        if (detachedSince !== undefined) await store.update(runId, { detachedSince });
      }
      await store.update(runs["ended"]!, { status: "completed" });
      await store.update(runs["interrupted"]!, { status: "interrupted" });
      const found = async (now: number, ttlMs: number) => {
        const ids = idsOf(await store.listReclaimable({ now, ttlMs }));
        return Object.keys(runs).filter((which) => ids.includes(runs[which]!));
      };
      assert.deepEqual(await found(1500, 1000), ["past", "exactly"]);
      assert.deepEqual(await found(501, 0), ["past", "exactly", "recent"]);
      await store.update(runs["past"]!, { detachedSince: undefined });
      assert.deepEqual(await found(1500, 1000), ["exactly"]);
      await store.update(runs["exactly"]!, { status: "aborted" });
    });

    test("the four fields of the driver round-trip, each on its own", async () => {
      const { runId } = await started(store, 1);
      const given = {
        sandboxKey: "box/a",
        detachedSince: 500,
        cancelRequested: true,
        driverEpoch: 1,
      };
      const read = async () => {
        const run = await store.get(runId);
        return Object.fromEntries(DRIVER_FIELDS.map((field) => [field, run?.[field]]));
      };
      const absent = Object.fromEntries(DRIVER_FIELDS.map((field) => [field, undefined]));
      assert.deepEqual(await read(), absent);
      await store.update(runId, given);
      assert.deepEqual(await read(), given);
      await store.update(runId, { driverEpoch: 2 });
      assert.deepEqual(await read(), { ...given, driverEpoch: 2 });
      await store.update(runId, { detachedSince: undefined });
      assert.deepEqual(await read(), { ...given, driverEpoch: 2, detachedSince: undefined });
      await store.update(runId, { cancelRequested: false });
      assert.equal((await read())["cancelRequested"], false);
      await store.update(runId, given);
      await store.update(runId, absent);
      assert.deepEqual(await read(), absent);
      const run = await store.get(runId);
      assert.deepEqual([run?.status, run?.startedAt], ["running", 1]);
    });

    test("an empty patch changes nothing", async () => {
      const { runId } = await started(store);
      const before = await store.get(runId);
      await store.update(runId, {});
      assert.deepEqual(await store.get(runId), before);
    });

    test("a cancel is a wish, and no status", async () => {
      const { runId, threadId } = await started(store);
      assert.equal(await wasCancelRequested(store, runId), false);
      await requestRunCancel(store, runId);
      assert.equal(await wasCancelRequested(store, runId), true);
      const expected = {
        runId,
        threadId,
        status: "running",
        startedAt: 1000,
        cancelRequested: true,
      };
      assert.deepEqual(await store.get(runId), expected);
      await store.update(runId, { cancelRequested: false });
      assert.equal(await wasCancelRequested(store, runId), false);
    });

    test("a cancel of a run that is not there is none", async () => {
      const runId = fresh("run");
      await requestRunCancel(store, runId);
      assert.equal(await wasCancelRequested(store, runId), false);
      assert.equal(await store.get(runId), null);
    });

    test("a run that waits for a person may be cancelled and end aborted", async () => {
      const { runId } = await started(store);
      await store.update(runId, { status: "interrupted" });
      await requestRunCancel(store, runId);
      assert.equal((await store.get(runId))?.status, "interrupted");
      await store.update(runId, { status: "aborted", finishedAt: 2000 });
      assert.equal((await store.get(runId))?.status, "aborted");
    });

    test("a detach writes where the sandbox is and since when, and a return clears it", async () => {
      const { runId, threadId } = await started(store);
      await store.update(runId, { detachedSince: 2000, sandboxKey: "box" });
      const left = {
        runId,
        threadId,
        status: "running",
        startedAt: 1000,
        detachedSince: 2000,
        sandboxKey: "box",
      };
      assert.deepEqual(await store.findActiveRun(threadId), left);
      await store.update(runId, { detachedSince: undefined });
      assert.equal((await store.findActiveRun(threadId))?.detachedSince, undefined);
    });

    for (const odd of [
      "a/b/../c",
      "..",
      ".",
      "with space",
      "50%25?x=1&y=2#z",
      "ünï-😀-\u202e",
      "CASE",
    ]) {
      test(`an id is whatever text it is: ${JSON.stringify(odd)}`, async () => {
        const [runId, threadId] = [`${odd}${fresh("")}${odd}`, `${odd}${fresh("")}${odd}`];
        await store.createOrResume({ runId, threadId, startedAt: 1 });
        await store.createOrResume({ runId: runId.toLowerCase(), threadId, startedAt: 2 });
        await store.update(runId, { status: "completed" });
        assert.equal((await store.get(runId))?.status, "completed");
        const ids = new Set([runId, runId.toLowerCase()]);
        assert.deepEqual(new Set(idsOf(await store.listByThread(threadId))), ids);
      });
    }

    test("an id may be a path and nothing more", async () => {
      for (const runId of ["..", ".", "/", "run/", "active/"]) {
        await store.createOrResume({ runId, threadId: `${runId} thread`, startedAt: 1 });
        assert.equal((await store.get(runId))?.threadId, `${runId} thread`);
      }
    });
  });
}
