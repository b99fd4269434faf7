// Checked by the compiler alone: the stores are what TanStack AI takes, older and newer.

import { defineRunStore, type RunRecord, type RunStore } from "@tanstack/ai";
import {
  solidInterruptStore,
  solidRunStore,
  type InterruptEntry,
  type InterruptRecord,
} from "../../typescript/solid-runs.js";

const options = { url: "http://127.0.0.1/" };

// The pinned version, with the optional methods known to be there.
export const runs = defineRunStore(solidRunStore(options));
export const required: Required<RunStore> = runs;

// Newer versions know the parents of runs.
type NewerRecord = RunRecord & { parentRunId?: string; subagentRunId?: string; name?: string };
interface NewerRunStore {
  createOrResume: (
    input: Pick<NewerRecord, "runId" | "threadId" | "startedAt"> &
      Partial<Pick<NewerRecord, "status" | "parentRunId" | "subagentRunId" | "name">>,
  ) => Promise<NewerRecord>;
  update: RunStore["update"];
  get: (runId: string) => Promise<NewerRecord | null>;
  listByThread?: (threadId: string) => Promise<NewerRecord[]>;
  listByParentRun?: (parentRunId: string) => Promise<NewerRecord[]>;
  listReclaimable?: (options: { now: number; ttlMs: number }) => Promise<NewerRecord[]>;
  findActiveRun: (threadId: string) => Promise<NewerRecord | null>;
}
export const newer: Required<NewerRunStore> = runs;

// @tanstack/ai-persistence takes this.
interface PersistenceInterruptStore {
  create: (record: Omit<InterruptRecord, "status" | "resolvedAt">) => Promise<void>;
  resolve: (interruptId: string, response?: unknown) => Promise<void>;
  cancel: (interruptId: string) => Promise<void>;
  commitBatch?: (entries: ReadonlyArray<InterruptEntry>) => Promise<void>;
  get: (interruptId: string) => Promise<InterruptRecord | null>;
  list: (threadId: string) => Promise<InterruptRecord[]>;
  listPending: (threadId: string) => Promise<InterruptRecord[]>;
  listByRun: (runId: string) => Promise<InterruptRecord[]>;
  listPendingByRun: (runId: string) => Promise<InterruptRecord[]>;
}
export const interrupts: Required<PersistenceInterruptStore> = solidInterruptStore(options);

// @ts-expect-error an update has no such key
void runs.update("r", { colour: "red" });
// @ts-expect-error a status is one of five
void runs.update("r", { status: "done" });
void runs.claim("r").then((claim) => {
  // @ts-expect-error a claim that was refused has no number
  return claim.epoch;
});
