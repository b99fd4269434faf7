// Keeps the runs of a TanStack AI server in Django, through the HTTP store of django-solid-runs.
// To be copied into your project: it needs fetch (Node 20 has it) and the types of @tanstack/ai.
import type { RunRecord, RunStore } from "@tanstack/ai";

export interface StoreOptions {
  url: string; // where Django mounts the store; a slash at the end or none
  headers?: Record<string, string>; // { Authorization: "Token …" }
  timeout?: number; // milliseconds for each attempt
  pauses?: number[]; // milliseconds between attempts; [] never tries again
  fetch?: typeof globalThis.fetch;
}

type Link = "parentRunId" | "subagentRunId" | "name"; // newer versions of @tanstack/ai have them
export type StoredRun = RunRecord & { [key in Link]?: string };
export type NewRun = Parameters<RunStore["createOrResume"]>[0] & {
  [key in Link | "traceId"]?: string;
};
type Patch = Parameters<RunStore["update"]>[1];
export type RunPatch = { [key in keyof Patch]: Patch[key] | undefined }; // undefined clears
export interface ClaimOptions {
  detachedBefore?: number; // only a run that nobody has watched since then
  silentBefore?: number; // only a run whose last heartbeat is as old
  expectedEpoch?: number | null; // only if the last claim is this one; null: if there was none
}
export type Claim =
  | {
      held: true;
      epoch: number;
      update: (patch: RunPatch) => Promise<boolean>; // false: superseded or ended, not written
      touch: () => Promise<boolean>; // the heartbeat; false: superseded or ended
    }
  | { held: false; reason: string }; // unknown, terminal, superseded, condition

export function solidRunStore(options: StoreOptions) {
  const send = sender(options);
  const inTurn = turns();

  const write = (runId: string, patch: RunPatch, fence: Query = {}): Promise<boolean> => {
    const body = patchBody(patch); // as it is now, even if its turn comes later
    // A status that was sent long ago and arrives now must not bring back a run that has ended.
    const alive = patch.status === "running" || patch.status === "interrupted";
    const query = { runId, ...(alive ? { expectedStatus: "running,interrupted" } : fence) };
    return inTurn(runId, async () => {
      try {
        await send("PATCH", "run/", { query, body });
        return true;
      } catch (error) {
        return !refusal(error);
      }
    });
  };
  const touch = async (runId: string, driverEpoch: number) => {
    const body = { runId, driverEpoch };
    return (await send<{ held: boolean }>("POST", "touch/", { body })).held;
  };

  const store = {
    createOrResume: (input: NewRun) => send<StoredRun>("POST", "", { body: input }),
    update: async (runId: string, patch: RunPatch): Promise<void> => {
      await write(runId, patch);
    },
    get: (runId: string) => send<StoredRun | null>("GET", "run/", { query: { runId } }),
    findActiveRun: (threadId: string) =>
      send<StoredRun | null>("GET", "active/", { query: { threadId } }),
    listByThread: (threadId: string) => send<StoredRun[]>("GET", "", { query: { threadId } }),
    listByParentRun: (parentRunId: string) =>
      send<StoredRun[]>("GET", "", { query: { parentRunId } }),
    listReclaimable: (query: { now: number; ttlMs: number }) =>
      send<StoredRun[]>("GET", "reclaimable/", { query }),
    listStalled: (query: { ttlMs: number; now?: number }) =>
      send<StoredRun[]>("GET", "stalled/", { query }),
    requestCancel: (runId: string) => send<void>("POST", "cancel/", { body: { runId } }),
    touch,
    // Sent once: a claim whose answer is lost may hold, and the same again would take the run from
    // whoever claimed it in between. To try again, read driverEpoch and give it as expectedEpoch.
    claim: async (runId: string, conditions: ClaimOptions = {}): Promise<Claim> => {
      const request = { body: { runId, ...conditions }, once: true };
      try {
        const claimed = await send<{ driverEpoch: number }>("POST", "claim/", request);
        const epoch = claimed.driverEpoch;
        const update = (patch: RunPatch) => write(runId, patch, { heldEpoch: epoch });
        return { held: true, epoch, update, touch: () => touch(runId, epoch) };
      } catch (error) {
        return { held: false, reason: refusal(error) };
      }
    },
  };
  return store satisfies RunStore;
}

// An absent key leaves the field, undefined clears it. What a model's provider says may hold
// characters that no database takes, and a run's end must not be lost over them.
function patchBody(patch: RunPatch): Record<string, unknown> {
  const { error, usage } = patch;
  const said = {
    ...(error && {
      error: storable({ message: cut(error.message, 16_000), code: cut(error.code, 255) }),
    }),
    ...(usage && { usage: storable(usage) }),
  };
  const given = Object.entries({ ...patch, ...said });
  return Object.fromEntries(given.map(([key, value]) => [key, value ?? null]));
}

const cut = (text: unknown, most: number) => (text == null ? text : String(text).slice(0, most));

const clean = (text: string) => text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");

function storable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, part: unknown) => {
    if (typeof part === "string") return clean(part);
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).map(([key, found]) => [clean(key), found]));
  });
}

// The writes of one run go one at a time, in the order of the calls.
function turns() {
  const last = new Map<string, Promise<unknown>>();
  return <T>(key: string, task: () => Promise<T>): Promise<T> => {
    const turn = (last.get(key) ?? Promise.resolve()).then(task, task);
    const leave = () => void (last.get(key) === turn && last.delete(key));
    last.set(key, turn);
    turn.then(leave, leave);
    return turn;
  };
}

export interface InterruptRecord {
  interruptId: string;
  runId: string;
  threadId: string;
  status: "pending" | "resolved" | "cancelled";
  requestedAt: number;
  resolvedAt?: number;
  payload: Record<string, unknown>;
  response?: unknown;
}
export type InterruptEntry =
  | { interruptId: string; status: "resolved"; response?: unknown }
  | { interruptId: string; status: "cancelled" };

export function solidInterruptStore(options: StoreOptions) {
  const send = sender(options);
  const list = (query: Query) => send<InterruptRecord[]>("GET", "", { query });

  return {
    create: (record: Omit<InterruptRecord, "status" | "resolvedAt">): Promise<void> => {
      const { interruptId, runId, threadId, requestedAt, payload } = record;
      return send("POST", "", { body: { interruptId, runId, threadId, requestedAt, payload } });
    },
    resolve: (interruptId: string, response?: unknown) =>
      send<void>("POST", "resolve/", { body: { interruptId, response } }),
    cancel: (interruptId: string) => send<void>("POST", "cancel/", { body: { interruptId } }),
    // All or nothing. Sent once: the same again finds nothing pending, and would be refused.
    commitBatch: (entries: ReadonlyArray<InterruptEntry>) =>
      send<void>("POST", "commit/", { body: { entries }, once: true }),
    get: (interruptId: string) =>
      send<InterruptRecord | null>("GET", "interrupt/", { query: { interruptId } }),
    list: (threadId: string) => list({ threadId }),
    listPending: (threadId: string) => list({ threadId, pending: "true" }),
    listByRun: (runId: string) => list({ runId }),
    listPendingByRun: (runId: string) => list({ runId, pending: "true" }),
  };
}

type Query = Record<string, string | number | undefined>;

export class SolidRunsError extends Error {
  readonly status: number;
  readonly body: string; // what the server said
  readonly code: string | undefined; // of a 409, say
  constructor(request: string, status: number, body: string) {
    super(`${request}: ${status} ${body.slice(0, 500)}`);
    this.name = "SolidRunsError";
    this.status = status;
    this.body = body;
    this.code = parsed(body)?.code;
  }
}

// The code of a 409, which is an answer and no failure. Anything else is thrown again.
function refusal(error: unknown): string {
  if (!(error instanceof SolidRunsError) || error.status !== 409 || !error.code) throw error;
  return error.code;
}

function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sender(options: StoreOptions) {
  const { headers, timeout = 10_000, pauses = [200, 600, 1_800] } = options;
  const { fetch = globalThis.fetch } = options;
  const root = options.url.replace(/\/*$/, "/");

  return async <T>(
    method: string,
    path: string,
    { query = {}, body, once = false }: { query?: Query; body?: unknown; once?: boolean },
  ): Promise<T> => {
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) search.append(key, String(value));
    }
    const address = `${root}${path}?${search}`;
    const attempt = async () => {
      const response = await fetch(address, {
        method,
        headers: { "Content-Type": "application/json", Accept: "application/json", ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeout),
        redirect: "manual", // a POST that is sent elsewhere becomes a GET
      });
      return { ok: response.ok, status: response.status, text: await response.text() };
    };
    for (let left = once ? [] : pauses; ; left = left.slice(1)) {
      const last = left.length === 0;
      const answer = await attempt().catch((error: unknown) => {
        if (last) throw error;
      });
      if (answer && (last || ![502, 503, 504].includes(answer.status))) {
        // What is no JSON comes from a wrong address, and must not look like "no active run".
        const found = parsed(answer.text);
        const written = answer.status === 204 && method !== "GET";
        if (answer.ok && (written || found !== undefined)) return found;
        throw new SolidRunsError(`${method} ${address}`, answer.status, answer.text);
      }
      await new Promise((done) => setTimeout(done, left[0]));
    }
  };
}
