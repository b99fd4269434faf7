// The served example, as the client and as the API see it.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { HttpAgent } from "@ag-ui/client";

const { EXAMPLE_URL, EXAMPLE_TOKEN } = process.env;
assert.ok(EXAMPLE_URL && EXAMPLE_TOKEN, "scripts/check_npm_client.py says where the example is.");

const ENDPOINT = `${EXAMPLE_URL}/ag-ui/`;
const HEADERS = { Authorization: `Bearer ${EXAMPLE_TOKEN}` };

export class Tab {
  // One tab of a browser: an HttpAgent, and what it was told of each of its runs.
  constructor(threadId = randomUUID(), options = {}) {
    this.threadId = threadId;
    this.agent = new HttpAgent({ url: ENDPOINT, threadId, headers: HEADERS, ...options });
  }

  get messages() {
    return this.agent.messages;
  }

  get state() {
    return this.agent.state;
  }

  get pending() {
    return this.agent.pendingInterrupts;
  }

  get pendingIds() {
    return this.pending.map((interrupt) => interrupt.id);
  }

  texts(role) {
    return this.messages.filter((one) => one.role === role).map((one) => one.content).filter(Boolean);
  }

  say(content, options = {}) {
    this.agent.addMessage({ id: randomUUID(), role: "user", content });
    return this.run(options);
  }

  resume(entries, options = {}) {
    return this.run({ resume: entries, ...options });
  }

  // Runs, and returns what the callbacks said: the outcome or the error, and what went out.
  async run({ runId = randomUUID(), resume, onText } = {}) {
    const told = { runId, events: [], outcome: null, error: null, failed: null, result: undefined };
    const done = await this.agent.runAgent(
      { runId, ...(resume ? { resume } : {}) },
      {
        onEvent: ({ event }) => void told.events.push(event.type),
        onRunFinishedEvent: (params) => {
          told.outcome = params.outcome;
          told.interrupts = params.interrupts;
          told.metadata = params.event.metadata;
        },
        onRunErrorEvent: ({ event }) => void (told.error = { code: event.code, message: event.message }),
        onRunFailed: ({ error }) => void (told.failed = error),
        onTextMessageContentEvent: ({ textMessageBuffer }) => onText?.(textMessageBuffer),
      },
    );
    return { ...told, result: done.result, newMessages: done.newMessages };
  }
}

// A fetch() whose first response breaks off, as a proxy does it, once this text has gone through.
export function breakingAfter(text) {
  let broken = false;
  return async (url, init) => {
    const response = await fetch(url, init);
    if (broken) return response;
    broken = true;
    let seen = "";
    const decoder = new TextDecoder();
    const cut = new TransformStream({
      transform(chunk, controller) {
        if (seen.includes(text)) return controller.terminate();
        seen += decoder.decode(chunk, { stream: true });
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body.pipeThrough(cut), response);
  };
}

export const approved = (id) => ({ interruptId: id, status: "resolved", payload: { approved: true } });
export const denied = (id, reason) => ({
  interruptId: id,
  status: "resolved",
  payload: { approved: false, ...(reason ? { reason } : {}) },
});
export const cancelled = (id) => ({ interruptId: id, status: "cancelled" });

async function request(path, { method = "GET", body } = {}) {
  const response = await fetch(EXAMPLE_URL + path, {
    method,
    headers: { ...HEADERS, Accept: "application/json", ...(body ? { "Content-Type": "application/json" } : {}) },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, body: await response.json() };
}

async function list(path) {
  const { status, body } = await request(path);
  assert.equal(status, 200, JSON.stringify(body));
  return Array.isArray(body) ? body : body.results;
}

// What the database holds of a thread: its runs in their order, with the AgentRun of each.
export async function stored(threadId) {
  const thread = encodeURIComponent(threadId);
  const runs = (await list(`/api/reserved-runs/?thread=${thread}`)).sort((a, b) => a.id - b.id);
  const interrupts = await list(`/api/interrupts/?state=all&thread=${thread}`);
  const refunds = await list(`/api/refunds/?thread=${thread}`);
  const traces = await Promise.all(runs.map((run) => list(`/api/agent-runs/?trace=${run.trace_id}`)));
  return {
    runs: runs.map((run) => run.run_id),
    statuses: runs.map((run) => run.status),
    agentRuns: traces.map((found) => found.map((run) => run.status).join()),
    interrupts: interrupts.sort((a, b) => a.id - b.id),
    states: interrupts.map((one) => one.state),
    refunds: refunds.map((one) => one.amount).reverse(),
    rows: runs,
  };
}

export async function detail(run) {
  return (await request(`/api/reserved-runs/${run.id}/`)).body;
}

export async function answerInInbox(interrupt, decision) {
  return request(`/api/interrupts/${interrupt.id}/answer/`, { method: "POST", body: decision });
}

export async function cancelRun(threadId, runId) {
  return request(`/ag-ui/${threadId}/${runId}/cancel`, { method: "POST" });
}

export async function threadOf(threadId) {
  return request(`/ag-ui/${threadId}`);
}

export async function eventually(what, check, patience = 10_000) {
  for (const until = Date.now() + patience; ;) {
    const found = await check();
    if (found) return found;
    assert.ok(Date.now() < until, `${what} within ${patience} ms`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
