// What passes between the store and Django, and what happens when it does not pass.

import assert from "node:assert/strict";
import { after, beforeEach, describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { SolidRunsError, type StoreOptions } from "../../typescript/solid-runs.js";
import {
  answerLost,
  answered,
  cutShort,
  doneAndRefused,
  neverSent,
  proxyTo,
  slowly,
  underway,
} from "./proxy.js";
import { RUNS, fresh, interruptStore, runStore, sleep, thrownBy } from "./served.js";

const proxy = await proxyTo(RUNS);
const direct = runStore();
const behind = (options: Partial<StoreOptions> = {}) => runStore({ url: proxy.url, ...options });

after(() => proxy.close());
beforeEach(() => {
  proxy.seen.length = 0;
  proxy.faults.length = 0;
});

async function started() {
  const [runId, threadId] = [fresh("run"), fresh("thread")];
  await direct.createOrResume({ runId, threadId, startedAt: 1000 });
  return { runId, threadId };
}

const patches = () => proxy.seen.filter((one) => one.method === "PATCH").map((one) => one.body);

describe("what is sent", () => {
  test("undefined is sent as null, and what is absent stays absent", async () => {
    const { runId } = await started();
    await behind().update(runId, {
      detachedSince: undefined,
      driverEpoch: 0,
      cancelRequested: false,
    });
    assert.deepEqual(patches(), [{ detachedSince: null, driverEpoch: 0, cancelRequested: false }]);
  });

  test("a status that is no end is sent on the condition that the run has none", async () => {
    const { runId } = await started();
    const store = behind();
    for (const status of ["running", "interrupted", "completed", "failed", "aborted"] as const) {
      await store.update(runId, { status });
    }
    await store.update(runId, { finishedAt: 1 });
    const expected = proxy.seen.map((one) => one.query.get("expectedStatus"));
    const alive = "running,interrupted";
    assert.deepEqual(expected, [alive, alive, null, null, null, null]);
  });

  test("an address works with and without a slash at its end", async () => {
    const { runId } = await started();
    for (const url of [RUNS, RUNS.replace(/\/$/, ""), `${RUNS}//`]) {
      assert.equal((await runStore({ url }).get(runId))?.runId, runId);
    }
  });

  test("a patch is what it was when update was called", async () => {
    const { runId } = await started();
    const store = behind();
    proxy.faults.push(slowly(50));
    const patch = { sandboxKey: "first" };
    const both = [store.update(runId, { driverEpoch: 1 }), store.update(runId, patch)];
    patch.sandboxKey = "later";
    await Promise.all(both);
    assert.equal((await direct.get(runId))?.sandboxKey, "first");
  });

  test("what a failed run says is cleaned, so that its end is not lost", async () => {
    const { runId } = await started();
    const error = { message: "broken \0 \ud83d and \ude00, whole 😀", code: "c\0de" };
    await behind().update(runId, { status: "failed", error });
    const run = await direct.get(runId);
    assert.equal(run?.status, "failed");
    assert.deepEqual(run.error, {
      message: "broken \ufffd \ufffd and \ufffd, whole 😀",
      code: "c\ufffdde",
    });
  });

  test("neither does the end get lost over a long message, a long code or a code that is a number", async () => {
    for (const code of ["x".repeat(1000), 529]) {
      const { runId } = await started();
      const error = { message: "😀".repeat(1_000_000), code } as { message: string; code: string };
      await behind().update(runId, { status: "failed", error });
      const run = await direct.get(runId);
      assert.equal(run?.status, "failed");
      assert.match(run.error!.message, /^(😀){1000}/u);
      assert.equal(run.error!.code, String(code).slice(0, 255));
    }
  });

  test("nor over other fields of the error, or odd characters in what was counted", async () => {
    const { runId } = await started();
    const error = Object.assign(new Error("boom"), { code: "x", status: 529 });
    const usage = { promptTokens: 1, completionTokens: 1, totalTokens: 2, model: "a\0b" };
    await behind().update(runId, { status: "failed", error: { ...error, message: "boom" }, usage });
    const run = await direct.get(runId);
    assert.deepEqual(run?.error, { message: "boom", code: "x" });
    assert.deepEqual(run.usage, { ...usage, model: "a\ufffdb" });
  });

  test("nor over odd characters in the names of what was counted", async () => {
    const { runId } = await started();
    const counts = { promptTokens: 1, completionTokens: 1, totalTokens: 2 };
    const usage = { ...counts, "a\0": { "b\ud83d": [{ "c\ude00": 1 }, null] }, "😀": null };
    await behind().update(runId, { status: "completed", usage });
    const run = await direct.get(runId);
    assert.equal(run?.status, "completed");
    const stored = { ...counts, "a\ufffd": { "b\ufffd": [{ "c\ufffd": 1 }, null] }, "😀": null };
    assert.deepEqual(run.usage, stored);
  });
});

describe("the order of patches", () => {
  test("patches of a run go one at a time, in the order of the calls", async () => {
    const { runId } = await started();
    const store = behind();
    proxy.faults.push(slowly(150), slowly(100), slowly(50));
    const calls = [
      store.update(runId, { status: "interrupted" }),
      store.update(runId, { status: "running" }),
      store.update(runId, { status: "completed", finishedAt: 2000 }),
    ];
    await sleep(75);
    assert.equal(patches().length, 1);
    await Promise.all(calls);
    assert.deepEqual(
      patches().map((one) => one.status),
      ["interrupted", "running", "completed"],
    );
    assert.equal((await direct.get(runId))?.status, "completed");
  });

  test("a patch waits for the last one, and not only for the first", async () => {
    const { runId } = await started();
    const store = behind();
    proxy.faults.push(slowly(50), slowly(200));
    const order: string[] = [];
    const first = store.update(runId, { status: "interrupted" });
    const second = store.update(runId, { status: "running" }).then(() => order.push("second"));
    await first;
    await store.update(runId, { status: "completed" }).then(() => order.push("third"));
    await second;
    assert.deepEqual(order, ["second", "third"]);
  });

  test("the patches of another run do not wait", async () => {
    const [one, other] = [await started(), await started()];
    const store = behind();
    proxy.faults.push(slowly(1_000));
    const order: string[] = [];
    await Promise.all([
      store.update(one.runId, { status: "completed" }).then(() => order.push("slow")),
      store.update(other.runId, { status: "completed" }).then(() => order.push("quick")),
    ]);
    assert.deepEqual(order, ["quick", "slow"]);
  });

  test("a patch that fails holds nothing up", async () => {
    const { runId } = await started();
    const store = behind();
    const failing = store.update(runId, { finishedAt: "yesterday" as unknown as number });
    const after = store.update(runId, { status: "completed" });
    assert.equal(((await thrownBy(failing)) as SolidRunsError).status, 400);
    await after;
    assert.equal((await direct.get(runId))?.status, "completed");
  });

  test("runs that were written are forgotten", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    const store = behind({ fetch: async () => new Response(null, { status: 204 }) });
    const write = async (count: number) => {
      for (let number = 0; number < count; number++) {
        await store.update(`${number}-${"x".repeat(10_000)}`, { driverEpoch: number });
      }
      collect();
      return process.memoryUsage().heapUsed;
    };
    const before = await write(100);
    const grown = (await write(5_000)) - before;
    assert.ok(grown < 10_000_000, `the heap grew by ${grown} bytes`);
  });
});

describe("what is lost on the way", () => {
  const FAULTS = {
    "the answer is lost": answerLost,
    "the request is lost": neverSent,
    "the answer breaks off": cutShort,
    "a proxy says 502": doneAndRefused(502),
    "a proxy says 503": answered(503, "busy"),
    "a proxy says 504": doneAndRefused(504),
  };

  for (const [what, fault] of Object.entries(FAULTS)) {
    test(`${what}: create gives the one run`, async () => {
      const input = { runId: fresh("run"), threadId: fresh("thread"), startedAt: 5 };
      proxy.faults.push(fault, fault);
      const run = await behind().createOrResume(input);
      assert.deepEqual(run, { ...input, status: "running" });
      assert.deepEqual(await direct.listByThread(input.threadId), [run]);
      assert.equal(proxy.seen.length, 3);
    });

    test(`${what}: an update is written, and a read answered`, async () => {
      const { runId, threadId } = await started();
      const store = behind();
      proxy.faults.push(fault);
      await store.update(runId, { status: "completed", finishedAt: 9 });
      proxy.faults.push(fault);
      const run = await store.get(runId);
      assert.deepEqual([run?.status, run?.finishedAt], ["completed", 9]);
      proxy.faults.push(fault);
      assert.equal(await store.findActiveRun(threadId), null);
      assert.equal(proxy.seen.length, 6);
    });

    test(`${what}: a claim is not sent again`, async () => {
      const { runId } = await started();
      proxy.faults.push(fault);
      await assert.rejects(behind().claim(runId));
      assert.equal(proxy.seen.length, 1);
    });
  }

  test("a claim whose answer was lost is got on the condition that nobody came between", async () => {
    const { runId } = await started();
    proxy.faults.push(answerLost);
    await assert.rejects(behind().claim(runId, { expectedEpoch: null }));
    const epoch = (await direct.get(runId))?.driverEpoch;
    assert.equal(epoch, 1);
    const again = await behind().claim(runId, { expectedEpoch: epoch });
    assert.deepEqual([again.held, again.held && again.epoch], [true, 2]);
    assert.deepEqual(await behind().claim(runId, { expectedEpoch: epoch }), {
      held: false,
      reason: "superseded",
    });
  });

  test("pauses grow, and the last failure is thrown", async () => {
    const { runId } = await started();
    const times: number[] = [];
    const said = answered(503, "The database is down.");
    for (let number = 0; number < 4; number++) {
      proxy.faults.push(async (...all) => {
        times.push(performance.now());
        await said(...all);
      });
    }
    const error = await thrownBy(behind().get(runId));
    assert.ok(error instanceof SolidRunsError);
    assert.deepEqual([error.status, error.body], [503, "The database is down."]);
    assert.match(error.message, /GET .*503 The database is down/);
    const pauses = times.slice(1).map((time, number) => time - times[number]!);
    assert.equal(pauses.length, 3);
    for (const [number, least] of [50, 100, 200].entries()) {
      assert.ok(pauses[number]! >= least - 5, `pauses were ${pauses}`);
    }
  });

  test("a network that stays away is an error, not an idle thread", async () => {
    const store = runStore({ url: "http://127.0.0.1:9/", pauses: [1] });
    await assert.rejects(store.findActiveRun("t"));
    await assert.rejects(store.update("r", { status: "completed" }));
  });

  test("an attempt has its time, and the next one gets an answer", async () => {
    const { runId } = await started();
    proxy.faults.push(slowly(10_000));
    const begun = performance.now();
    assert.equal((await behind({ timeout: 1_000 }).get(runId))?.runId, runId);
    assert.ok(performance.now() - begun < 6_000);
    assert.equal(proxy.seen.length, 2);
  });

  test("a status that comes long after the end does not revive the run", async () => {
    for (const status of ["running", "interrupted"] as const) {
      const { runId, threadId } = await started();
      const store = behind({ timeout: 1_000 });
      const delayed = underway();
      proxy.faults.push(delayed.fault);
      await store.update(runId, { status });
      await store.update(runId, { status: "completed", finishedAt: 9 });
      delayed.release();
      assert.equal(await delayed.arrived, 409);
      assert.equal((await direct.get(runId))?.status, "completed");
      assert.equal(await direct.findActiveRun(threadId), null);
    }
  });

  test("an end whose answer was lost is written once more, and stays the end", async () => {
    const { runId } = await started();
    proxy.faults.push(answerLost, doneAndRefused(503));
    await behind().update(runId, { status: "aborted", finishedAt: 9 });
    const run = await direct.get(runId);
    assert.deepEqual([run?.status, run?.finishedAt], ["aborted", 9]);
    assert.equal(patches().length, 3);
  });

  test("a status for a run that has ended meanwhile is no error", async () => {
    const { runId } = await started();
    await direct.update(runId, { status: "aborted" });
    await behind().update(runId, { status: "running", detachedSince: 5 });
    const run = await direct.get(runId);
    assert.deepEqual([run?.status, run?.detachedSince], ["aborted", undefined]);
  });
});

describe("a wrong address is an error", () => {
  const PAGES = {
    "a page that is not there": answered(404, "<h1>Not Found</h1>"),
    "a page of another kind": answered(200, "<!doctype html><title>App</title>"),
    "nothing at all": answered(200, ""),
    "an answer without a body": answered(204, ""),
    "a page that is elsewhere": answered(302, "", { Location: "/login/" }),
  };

  for (const [what, page] of Object.entries(PAGES)) {
    test(`${what} is not an idle thread`, async () => {
      proxy.faults.push(page);
      const error = await thrownBy(behind().findActiveRun("t"));
      assert.ok(error instanceof SolidRunsError, String(error));
      assert.equal(proxy.seen.length, 1);
    });
  }

  test("a patch is not taken for written there", async () => {
    for (const which of [
      "a page that is not there",
      "a page of another kind",
      "a page that is elsewhere",
    ] as const) {
      proxy.faults.push(PAGES[which]);
      await assert.rejects(behind().update("r", { status: "completed" }), SolidRunsError);
    }
  });

  test("the real thing says 404", async () => {
    const error = await thrownBy(runStore({ url: `${RUNS}nowhere` }).findActiveRun("t"));
    assert.equal((error as SolidRunsError).status, 404);
  });

  test("an answer from elsewhere is no refusal, a 409 without a code neither", async () => {
    const { runId } = await started();
    proxy.faults.push(answered(409, "<h1>Conflict</h1>"), answered(409, "{}"));
    await assert.rejects(behind().update(runId, { status: "running" }), { status: 409 });
    await assert.rejects(behind().claim(runId), { status: 409 });
    const blocked = answered(403, '{"code": "blocked"}');
    proxy.faults.push(blocked, blocked);
    await assert.rejects(behind().update(runId, { status: "running" }), { status: 403 });
    await assert.rejects(behind().claim(runId), { status: 403, code: "blocked" });
  });
});

describe("what the server refuses", () => {
  test("a token that is none is an error", async () => {
    const error = await thrownBy(runStore({ headers: { Authorization: "Token none" } }).get("r"));
    assert.ok(error instanceof SolidRunsError);
    assert.equal(error.status, 401);
    await assert.rejects(runStore({ headers: {} }).findActiveRun("t"), SolidRunsError);
    await assert.rejects(interruptStore({ headers: {} }).listPending("t"), SolidRunsError);
  });

  test("a value that no record holds is an error that names the field, and nothing is written", async () => {
    const { runId } = await started();
    const wrong: Record<string, unknown> = {
      status: "done",
      finishedAt: 1.5,
      detachedSince: "now",
      driverEpoch: -1,
      cancelRequested: 1,
      color: "red",
    };
    for (const [field, value] of Object.entries(wrong)) {
      const patch = { sandboxKey: "box", [field]: value };
      const error = await thrownBy(behind().update(runId, patch as object));
      assert.ok(error instanceof SolidRunsError, field);
      assert.equal(error.status, 400);
      assert.deepEqual(Object.keys(JSON.parse(error.body)), [field]);
      assert.equal((await direct.get(runId))?.sandboxKey, undefined);
    }
  });

  test("an id that no key can hold is an error", async () => {
    for (const runId of ["", "a\0b", "half \ud83d", "x".repeat(10_000)]) {
      const creating = direct.createOrResume({ runId, threadId: "t", startedAt: 1 });
      assert.equal(((await thrownBy(creating)) as SolidRunsError).status, 400);
    }
  });
});
