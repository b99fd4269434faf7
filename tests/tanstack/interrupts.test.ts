// What TanStack AI expects of an InterruptStore.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SolidRunsError, type InterruptRecord } from "../../typescript/solid-runs.js";
import { answerLost, proxyTo } from "./proxy.js";
import { INTERRUPTS, fresh, headersOfAnother, interruptStore, thrownBy } from "./served.js";

const store = interruptStore();
const ids = (records: InterruptRecord[]) => records.map((record) => record.interruptId);

async function asked(given: Partial<InterruptRecord> = {}) {
  const record = {
    interruptId: fresh("interrupt"),
    runId: fresh("run"),
    threadId: fresh("thread"),
    requestedAt: 100,
    payload: { tool: "refund", arguments: { amount: "12.50" } },
    ...given,
  };
  await store.create(record);
  return record;
}

test("an interrupt that is not there is null", async () => {
  assert.equal(await store.get(fresh("interrupt")), null);
  for (const list of [store.list, store.listPending, store.listByRun, store.listPendingByRun]) {
    assert.deepEqual(await list(fresh("nothing")), []);
  }
});

test("a new one is pending, and has what it was given and nothing else", async () => {
  const record = await asked();
  assert.deepEqual(await store.get(record.interruptId), { ...record, status: "pending" });
});

test("a second create leaves the first as it is, answered or not", async () => {
  const record = await asked();
  await store.create({ ...record, requestedAt: 5, payload: { other: true } });
  assert.deepEqual(await store.get(record.interruptId), { ...record, status: "pending" });
  await store.resolve(record.interruptId, { ok: true });
  const resolved = await store.get(record.interruptId);
  await store.create(record);
  assert.deepEqual(await store.get(record.interruptId), resolved);
});

test("a resolved one has its time and its response, which may be null, false or absent", async () => {
  for (const response of [{ ok: true, text: "😀" }, null, false, 0, "", [1]]) {
    const { interruptId } = await asked();
    await store.resolve(interruptId, response);
    const found = await store.get(interruptId);
    assert.deepEqual([found?.status, found?.response], ["resolved", response]);
    assert.ok(Math.abs(found!.resolvedAt! - Date.now()) < 60_000);
  }
  const { interruptId } = await asked();
  await store.resolve(interruptId);
  const found = await store.get(interruptId);
  assert.deepEqual([found?.status, "response" in found!], ["resolved", false]);
});

test("a cancelled one has its time and no response", async () => {
  const { interruptId } = await asked();
  await store.cancel(interruptId);
  const found = await store.get(interruptId);
  assert.deepEqual([found?.status, typeof found?.resolvedAt], ["cancelled", "number"]);
  assert.equal("response" in found!, false);
});

test("resolving and cancelling one that is not there is nothing", async () => {
  const interruptId = fresh("interrupt");
  await store.resolve(interruptId, 1);
  await store.cancel(interruptId);
  assert.equal(await store.get(interruptId), null);
});

test("lists are of a thread or of a run, in the order of asking, and of all or the pending", async () => {
  const [threadId, runId] = [fresh("thread/.."), fresh("run ?&")];
  const third = await asked({ threadId, requestedAt: 300 });
  const second = await asked({ threadId, runId, requestedAt: 200 });
  const first = await asked({ threadId, runId, requestedAt: 100 });
  const all = ids([first, second, third] as InterruptRecord[]);
  assert.deepEqual(ids(await store.list(threadId)), all);
  assert.deepEqual(ids(await store.listPending(threadId)), all);
  assert.deepEqual(ids(await store.listByRun(runId)), all.slice(0, 2));
  await store.resolve(first.interruptId, { ok: true });
  await store.cancel(third.interruptId);
  assert.deepEqual(ids(await store.list(threadId)), all);
  assert.deepEqual(ids(await store.listPending(threadId)), [second.interruptId]);
  assert.deepEqual(ids(await store.listPendingByRun(runId)), [second.interruptId]);
});

describe("a batch", () => {
  test("is committed whole", async () => {
    const [one, two, three] = [await asked(), await asked(), await asked()];
    await store.commitBatch([
      { interruptId: one.interruptId, status: "resolved", response: { approved: true } },
      { interruptId: two.interruptId, status: "cancelled" },
      { interruptId: three.interruptId, status: "resolved" },
    ]);
    const found = await Promise.all([one, two, three].map((each) => store.get(each.interruptId)));
    assert.deepEqual(
      found.map((each) => each?.status),
      ["resolved", "cancelled", "resolved"],
    );
    assert.deepEqual(
      found.map((each) => each?.response),
      [{ approved: true }, undefined, undefined],
    );
  });

  test("with one that is unknown, answered or named twice changes nothing, and is an error", async () => {
    const open = await asked();
    const answered = await asked();
    await store.resolve(answered.interruptId);
    for (const wrong of [fresh("interrupt"), answered.interruptId, open.interruptId]) {
      const batch = [open.interruptId, wrong].map(
        (interruptId) => ({ interruptId, status: "cancelled" }) as const,
      );
      const error = await thrownBy(store.commitBatch(batch));
      assert.ok(error instanceof SolidRunsError);
      assert.deepEqual([error.status, error.code], [409, "batch_rejected"]);
      assert.equal((await store.get(open.interruptId))?.status, "pending");
    }
  });

  test("is sent once, and what is safe is sent again", async () => {
    const proxy = await proxyTo(INTERRUPTS);
    try {
      const behind = interruptStore({ url: proxy.url });
      const { interruptId } = await asked();
      proxy.faults.push(answerLost);
      await behind.resolve(interruptId, { ok: true });
      proxy.faults.push(answerLost);
      assert.deepEqual((await behind.get(interruptId))?.response, { ok: true });
      assert.equal(proxy.seen.length, 4);
      const open = await asked();
      proxy.faults.push(answerLost);
      const batch = [{ interruptId: open.interruptId, status: "cancelled" }] as const;
      await assert.rejects(behind.commitBatch(batch));
      assert.equal(proxy.seen.length, 5);
      assert.equal((await behind.get(open.interruptId))?.status, "cancelled");
    } finally {
      proxy.close();
    }
  });
});

test("the interrupts of another user are unknown", async () => {
  const record = await asked();
  const other = interruptStore({ headers: headersOfAnother });
  assert.equal(await other.get(record.interruptId), null);
  assert.deepEqual(await other.listPending(record.threadId), []);
  assert.deepEqual(await other.listByRun(record.runId), []);
  await other.resolve(record.interruptId);
  await other.cancel(record.interruptId);
  const batch = [{ interruptId: record.interruptId, status: "cancelled" }] as const;
  await assert.rejects(other.commitBatch(batch), { code: "batch_rejected" });
  assert.equal((await store.get(record.interruptId))?.status, "pending");
});
