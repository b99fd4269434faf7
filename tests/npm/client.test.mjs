// @ag-ui/client against the served example: what the client believes, and what the database holds.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import {
  Tab, answerInInbox, approved, breakingAfter, cancelRun, cancelled, denied, detail, eventually, stored, threadOf,
} from "./served.mjs";

async function asked(text = "refund 12.50") {
  const tab = new Tab();
  const told = await tab.say(text);
  assert.equal(told.outcome, "interrupt");
  return tab;
}

const lastOf = (list) => list[list.length - 1];

test("a run succeeds and leaves the client its text and its state", async () => {
  const tab = new Tab();
  const told = await tab.say("count to 5");
  assert.deepEqual([told.outcome, told.error, told.failed], ["success", null, null]);
  assert.deepEqual(told.result, { refunded: "0" });
  assert.deepEqual(tab.texts("assistant"), ["1 2 3 4 5 "]);
  assert.deepEqual(tab.state, { refunds: [], counted: 5 });
  assert.deepEqual(tab.pending, []);
  const { runs, statuses, agentRuns, rows } = await stored(tab.threadId);
  assert.deepEqual([runs, statuses, agentRuns], [[told.runId], ["succeeded"], ["complete"]]);
  assert.deepEqual((await detail(rows[0])).snapshot, tab.state);
  assert.equal(rows[0].sequence, told.events.length);
});

test("a run that asks is interrupted, and the client knows what it asks", async () => {
  const tab = new Tab();
  const told = await tab.say("refund 12.50");
  assert.equal(told.outcome, "interrupt");
  const [interrupt] = tab.pending;
  assert.equal(tab.pending.length, 1);
  assert.equal(interrupt.reason, "tool_call");
  assert.equal(interrupt.message, "Refund 12.50 EUR?");
  assert.deepEqual(interrupt.metadata, { tool: "refund", arguments: { amount: "12.50", currency: "EUR" } });
  const call = lastOf(tab.messages).toolCalls[0];
  assert.deepEqual([call.id, call.function.name], [interrupt.toolCallId, "refund"]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns, found.states], [["interrupted"], ["complete"], ["open"]]);
  assert.deepEqual(found.refunds, []);
  const uncovered = tab.say("hello");
  await assert.rejects(uncovered, /pending interrupt/);
  assert.equal((await stored(tab.threadId)).runs.length, 1);
});

test("an approval runs the tool once and clears what was pending", async () => {
  const tab = await asked();
  const [interrupt] = tab.pending;
  const told = await tab.resume([approved(interrupt.id)]);
  assert.equal(told.outcome, "success");
  assert.deepEqual(told.result, { refunded: "12.50" });
  assert.deepEqual(tab.pending, []);
  assert.ok(!told.events.includes("TOOL_CALL_START"));
  const result = tab.messages.find((one) => one.role === "tool");
  assert.deepEqual([result.toolCallId, result.content], [interrupt.toolCallId, "Refunded 12.50 EUR."]);
  assert.deepEqual(tab.state.refunds, [{ amount: "12.50", tool_call_id: interrupt.toolCallId }]);
  const found = await stored(tab.threadId);
  assert.deepEqual(found.statuses, ["interrupted", "succeeded"]);
  assert.deepEqual(found.agentRuns, ["complete", "complete"]);
  assert.deepEqual(found.refunds, ["12.50"]);
  assert.deepEqual([found.interrupts[0].state, found.interrupts[0].redeemed_by], ["settled", told.runId]);
  assert.equal(found.interrupts[0].decided_by, "demo");
});

test("a denial is told to the agent, and the tool does not run", async () => {
  const tab = await asked();
  const [interrupt] = tab.pending;
  const told = await tab.resume([denied(interrupt.id, "too much")]);
  assert.equal(told.outcome, "success");
  assert.deepEqual(tab.texts("tool"), ["Denied: too much."]);
  assert.deepEqual(tab.pending, []);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.refunds], [["interrupted", "succeeded"], []]);
  assert.equal(found.interrupts[0].state, "settled");
  assert.deepEqual(found.interrupts[0].decision.payload, { approved: false, reason: "too much" });
});

test("an answer to a form reaches the agent as it was given", async () => {
  const tab = await asked("survey");
  const [interrupt] = tab.pending;
  assert.deepEqual(Object.keys(interrupt.responseSchema.properties), ["name", "nights", "room", "breakfast"]);
  const payload = { name: "Ann", nights: 3, room: "suite", breakfast: true };
  const told = await tab.resume([{ interruptId: interrupt.id, status: "resolved", payload }]);
  assert.equal(told.outcome, "success");
  assert.ok(tab.texts("assistant").includes("I book a suite for Ann."));
  assert.deepEqual((await stored(tab.threadId)).interrupts[0].decision.payload, payload);
});

test("a run that is cancelled from elsewhere ends as cancelled", async () => {
  const tab = new Tab(), runId = randomUUID();
  let asking = null;
  const told = await tab.say("count to 1000", {
    runId,
    onText: (text) => {
      if (text.includes("3 ")) asking ??= cancelRun(tab.threadId, runId);
    },
  });
  assert.ok([200, 202].includes((await asking).status));
  assert.deepEqual([told.outcome, told.error, told.result], ["cancelled", null, undefined]);
  assert.deepEqual(tab.pending, []);
  assert.match(lastOf(tab.texts("assistant")), /^1 2 3 /);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns], [["cancelled"], ["cancelled"]]);
  assert.equal((await tab.say("hello")).outcome, "success");
});

test("a failure that the agent explains reaches the client", async () => {
  const tab = new Tab();
  const told = await tab.say("fail");
  const failure = { code: "closed", message: "The booking system is closed on Sundays." };
  assert.deepEqual([told.outcome, told.error], [null, failure]);
  assert.equal(lastOf(told.events), "RUN_ERROR");
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns], [["failed"], ["failed"]]);
  assert.deepEqual((await detail(found.rows[0])).failure, failure);
});

test("a page that was loaded again has the conversation, with what failed and what was answered", async () => {
  const tab = new Tab();
  await tab.say("fail");
  await tab.say("refund 12.50");
  await tab.resume([denied(tab.pendingIds[0], "too much")]);
  await tab.say("refund 5.00");
  const reloaded = new Tab(tab.threadId);
  assert.equal((await reloaded.run()).outcome, "interrupt");
  assert.deepEqual(reloaded.messages.filter((one) => one.role !== "activity"), tab.messages);
  const activities = reloaded.messages.filter((one) => one.role === "activity");
  assert.deepEqual(activities.map((one) => one.activityType), ["failed", "answer"]);
  const [failure, answer] = activities.map((one) => one.content);
  assert.equal(failure.message, "The booking system is closed on Sundays.");
  assert.deepEqual([answer.payload, answer.by], [{ approved: false, reason: "too much" }, "demo"]);
  assert.equal((await reloaded.resume([approved(reloaded.pendingIds[0])])).outcome, "success");
});

test("of an exception the client is told nothing", async () => {
  const tab = new Tab();
  const told = await tab.say("crash");
  assert.deepEqual(told.error, { code: "internal_error", message: "The run failed." });
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns], [["failed"], ["failed"]]);
  assert.ok(!JSON.stringify(await detail(found.rows[0])).includes("ledger"));
});

test("an ended run is replayed under its id, and nothing runs twice", async () => {
  const tab = await asked();
  const answers = [approved(tab.pending[0].id)];
  const first = await tab.resume(answers);
  const again = await tab.resume(answers, { runId: first.runId });
  assert.equal(again.outcome, "success");
  assert.deepEqual(again.events, ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
  assert.equal(tab.state.refunds.length, 1);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.refunds], [["interrupted", "succeeded"], ["12.50"]]);
  assert.deepEqual(found.agentRuns, ["complete", "complete"]);
});

test("an interrupted run is replayed with what is still open", async () => {
  const tab = new Tab(), runId = randomUUID();
  await tab.say("refund 12.50", { runId });
  const ids = tab.pendingIds;
  tab.agent.pendingInterrupts = []; // as in a tab that missed the end
  const again = await tab.run({ runId });
  assert.deepEqual([again.outcome, tab.pendingIds], ["interrupt", ids]);
  assert.equal((await stored(tab.threadId)).runs.length, 1);
});

test("an interrupted run whose questions were answered is replayed as done", async () => {
  const tab = new Tab(), runId = randomUUID();
  await tab.say("refund 12.50", { runId });
  const answering = await tab.resume([approved(tab.pending[0].id)]);
  const again = await tab.run({ runId });
  assert.deepEqual([again.outcome, tab.pending], ["success", []]);
  assert.deepEqual(again.metadata, { answeredBy: [answering.runId] });
  assert.deepEqual((await stored(tab.threadId)).refunds, ["12.50"]);
});

test("a failed run is replayed as failed", async () => {
  const tab = new Tab(), runId = randomUUID();
  const first = await tab.say("fail", { runId });
  const again = await tab.run({ runId });
  assert.deepEqual(again.error, first.error);
  assert.deepEqual((await stored(tab.threadId)).agentRuns, ["failed"]);
});

test("a retry after partial delivery gets the end of the run that goes on", async () => {
  const tab = new Tab(undefined, { fetch: breakingAfter('"delta":"4 "') }), runId = randomUUID();
  const broken = await tab.say("count to 15", { runId });
  assert.deepEqual([broken.outcome, broken.error, broken.failed], [null, null, null]);
  assert.ok(tab.state.counted >= 3 && tab.state.counted < 15, `counted ${tab.state.counted}`);
  assert.equal(tab.messages.length, 2); // the half message goes along with the retry
  const again = await tab.run({ runId });
  assert.deepEqual([again.outcome, again.error, again.failed], ["success", null, null]);
  assert.equal(tab.state.counted, 15);
  assert.deepEqual(tab.texts("assistant"), ["1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 "]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns], [["succeeded"], ["complete"]]);
});

test("a tab that leaves is no cancel: its retry finds the run", async () => {
  const tab = new Tab(), runId = randomUUID();
  const left = await tab.say("count to 30", {
    runId,
    onText: (text) => text.includes("3 ") && tab.agent.abortRun(),
  });
  assert.deepEqual([left.outcome, left.error.code], [null, "abort"]); // the client's own word
  assert.equal((await stored(tab.threadId)).statuses[0], "started");
  assert.equal((await tab.run({ runId })).outcome, "success");
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.agentRuns], [["succeeded"], ["complete"]]);
});

test("a run id with another message is a conflict, and no row moves", async () => {
  const tab = new Tab(), runId = randomUUID();
  await tab.say("hello", { runId });
  const before = await stored(tab.threadId);
  const told = await tab.say("count to 3", { runId });
  assert.deepEqual([told.outcome, told.error.code], [null, "run_conflict"]);
  assert.deepEqual(told.events, ["RUN_ERROR"]);
  assert.deepEqual(await stored(tab.threadId), before);
});

test("an answer to an unknown interrupt is refused, and the right one is still taken", async () => {
  const tab = await asked();
  const [id] = tab.pendingIds;
  const before = await stored(tab.threadId);
  const told = await tab.resume([approved(id), approved("nobody-asked")]);
  assert.equal(told.error.code, "resume_rejected");
  assert.match(told.error.message, /nobody-asked/);
  assert.deepEqual(tab.pendingIds, [id]);
  assert.deepEqual(await stored(tab.threadId), before);
  assert.equal((await tab.resume([approved(id)])).outcome, "success");
  assert.deepEqual((await stored(tab.threadId)).refunds, ["12.50"]);
});

test("an answer that is given twice in one run is refused", async () => {
  const tab = await asked();
  const [id] = tab.pendingIds;
  const before = await stored(tab.threadId);
  const told = await tab.resume([approved(id), approved(id)]);
  assert.equal(told.error.code, "resume_rejected");
  assert.deepEqual(tab.pendingIds, [id]);
  assert.deepEqual(await stored(tab.threadId), before);
});

test("a second tab that answers too late is refused, and cancels its way out", async () => {
  const tab = await asked();
  const other = new Tab(tab.threadId);
  await other.run();
  assert.deepEqual(other.pendingIds, tab.pendingIds);
  const [id] = tab.pendingIds;
  assert.equal((await tab.resume([approved(id)])).outcome, "success");
  for (const answer of [approved(id), denied(id)]) {
    assert.equal((await other.resume([answer])).error.code, "interrupt_answered");
    assert.deepEqual(other.pendingIds, [id]);
  }
  const way = await other.resume([cancelled(id)]);
  assert.deepEqual([way.outcome, other.pendingIds], ["success", []]);
  assert.deepEqual(other.texts("tool"), ["Refunded before."]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.refunds, found.states], [["12.50"], ["settled"]]);
  assert.deepEqual(found.interrupts[0].decision.payload, { approved: true });
});

test("an approval that expired is refused on both sides, and a cancel unlocks the thread", async () => {
  const tab = await asked("refund 12.50 within 1");
  const [interrupt] = tab.pending;
  const reloaded = new Tab(tab.threadId);
  await new Promise((resolve) => setTimeout(resolve, Date.parse(interrupt.expiresAt) - Date.now() + 100));
  const before = await stored(tab.threadId);
  await assert.rejects(tab.resume([approved(interrupt.id)]), /expired/);
  const told = await reloaded.resume([approved(interrupt.id)]); // knows of no deadline
  assert.equal(told.error.code, "interrupt_expired");
  assert.deepEqual(await stored(tab.threadId), before);
  const way = await tab.resume([cancelled(interrupt.id)]);
  assert.deepEqual([way.outcome, tab.pending], ["success", []]);
  assert.deepEqual(tab.texts("tool"), ["Cancelled: nobody approved this."]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.states, found.refunds], [["settled"], []]);
  assert.equal(found.interrupts[0].decision.status, "cancelled");
});

test("a question that expired is open no more, and a plain message goes on without it", async () => {
  const tab = await asked("refund 12.50 within 1");
  const deadline = Date.parse(tab.pending[0].expiresAt);
  await new Promise((resolve) => setTimeout(resolve, deadline - Date.now() + 100));
  assert.deepEqual((await threadOf(tab.threadId)).body.interrupts, []);
  const reloaded = new Tab(tab.threadId);
  assert.equal((await reloaded.say("count to 2")).outcome, "success");
  assert.deepEqual(reloaded.texts("tool"), ["Cancelled: nobody approved this."]);
  assert.equal(lastOf(reloaded.texts("assistant")), "1 2 ");
  assert.deepEqual((await stored(tab.threadId)).refunds, []);
});

test("a full set of cancels is an ordinary run, which is told what was abandoned", async () => {
  const tab = await asked("ask twice");
  assert.equal(tab.pending.length, 2);
  const ids = tab.pendingIds;
  await assert.rejects(tab.resume([cancelled(ids[0])]), /pending interrupt/);
  const told = await tab.resume(ids.map(cancelled));
  assert.deepEqual([told.outcome, tab.pending], ["success", []]);
  assert.equal(tab.texts("tool").length, 2);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.states], [["interrupted", "succeeded"], ["settled", "settled"]]);
  assert.deepEqual(found.refunds, []);
});

test("of two questions one can be approved and one denied", async () => {
  const tab = await asked("ask twice");
  const ids = tab.pendingIds;
  assert.equal((await tab.resume([approved(ids[0]), denied(ids[1])])).outcome, "success");
  assert.deepEqual(tab.texts("tool"), ["Refunded 10.00 EUR.", "Denied: no reason given."]);
  assert.deepEqual((await stored(tab.threadId)).refunds, ["10.00"]);
});

test("a page that was loaded again is offered what is open, and answers it", async () => {
  const before = await asked();
  const tab = new Tab(before.threadId);
  const known = await threadOf(tab.threadId);
  assert.deepEqual(known.body.interrupts.map((one) => one.id), before.pendingIds);
  const offer = await tab.run();
  assert.equal(offer.outcome, "interrupt");
  assert.deepEqual(tab.pending, before.pending);
  assert.deepEqual(tab.messages, before.messages);
  assert.deepEqual(tab.state, { refunds: [], counted: 0 });
  assert.equal((await stored(tab.threadId)).runs.length, 1, "an offer is no row");
  assert.equal((await tab.resume([approved(tab.pending[0].id)])).outcome, "success");
  const found = await stored(tab.threadId);
  assert.deepEqual([found.statuses, found.refunds], [["interrupted", "succeeded"], ["12.50"]]);
});

test("an approval in the inbox and then the browser's own run the tool once", async () => {
  const tab = await asked();
  const [asking] = (await stored(tab.threadId)).interrupts;
  const decision = { status: "resolved", payload: { approved: true } };
  const answered = await answerInInbox(asking, decision);
  assert.deepEqual([answered.status, answered.body.state], [200, "free"]);
  assert.deepEqual((await stored(tab.threadId)).refunds, []);
  const told = await tab.resume([approved(asking.interrupt_id)]);
  assert.deepEqual([told.outcome, tab.pending], ["success", []]);
  const late = await answerInInbox(asking, { status: "resolved", payload: { approved: false } });
  assert.deepEqual([late.status, late.body.code], [409, "interrupt_answered"]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.refunds, found.states], [["12.50"], ["settled"]]);
});

test("a denial in the inbox holds against the browser's approval", async () => {
  const tab = await asked();
  const [asking] = (await stored(tab.threadId)).interrupts;
  await answerInInbox(asking, { status: "resolved", payload: { approved: false } });
  const told = await tab.resume([approved(asking.interrupt_id)]);
  assert.equal(told.error.code, "interrupt_answered");
  const reloaded = new Tab(tab.threadId);
  assert.equal((await reloaded.say("hello")).outcome, "success");
  assert.deepEqual(reloaded.texts("tool"), ["Denied: no reason given."]);
  const found = await stored(tab.threadId);
  assert.deepEqual([found.refunds, found.states], [[], ["settled"]]);
});

test("an approval in the inbox is taken by the next run of a page loaded again", async () => {
  const before = await asked();
  const [asking] = (await stored(before.threadId)).interrupts;
  await answerInInbox(asking, { status: "resolved", payload: { approved: true } });
  const tab = new Tab(before.threadId);
  assert.equal((await tab.run()).outcome, "success");
  assert.deepEqual(tab.texts("tool"), ["Refunded 12.50 EUR."]);
  assert.equal((await tab.run()).outcome, "success");
  assert.deepEqual((await stored(tab.threadId)).refunds, ["12.50"]);
});

test("a page that is loaded again while a run goes on finds it", async () => {
  const tab = new Tab(), runId = randomUUID();
  const going = tab.say("count to 1000", { runId });
  await eventually("the run is started", async () => (await threadOf(tab.threadId)).body.run?.status === "started");
  const known = (await threadOf(tab.threadId)).body;
  assert.deepEqual([known.run.runId, known.interrupts], [runId, []]);
  await cancelRun(tab.threadId, runId);
  assert.equal((await going).outcome, "cancelled");
});
