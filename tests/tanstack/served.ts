// The HTTP store that the tests talk to, of two users, and what every test needs.

import { randomUUID } from "node:crypto";
import {
  solidInterruptStore,
  solidRunStore,
  type StoredRun,
  type StoreOptions,
} from "../../typescript/solid-runs.js";

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run scripts/check_tanstack.py.`);
  return value;
}

const django = variable("DJANGO_URL");
export const RUNS = `${django}/api/thread-runs/`;
export const INTERRUPTS = `${django}/api/thread-interrupts/`;
export const headers = { Authorization: `Token ${variable("DJANGO_TOKEN")}` };
export const headersOfAnother = { Authorization: `Token ${variable("DJANGO_TOKEN_OF_ANOTHER")}` };

export const runStore = (options: Partial<StoreOptions> = {}) =>
  solidRunStore({ url: RUNS, headers, pauses: [50, 100, 200], ...options });

export const interruptStore = (options: Partial<StoreOptions> = {}) =>
  solidInterruptStore({ url: INTERRUPTS, headers, pauses: [50, 100, 200], ...options });

// An id that no other test has: all of them share one database.
export const fresh = (name: string) => `${name}-${randomUUID()}`;

export const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

export const idsOf = (runs: StoredRun[]) => runs.map((run) => run.runId);

// One who tells what is thrown, so that a test can look at it.
export async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("Nothing was thrown.");
}
