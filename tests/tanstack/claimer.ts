// The other process of a race: for each line a run to claim, and for each claim a line.

import { createInterface } from "node:readline";
import { runStore } from "./served.js";

const store = runStore();
console.log("ready");
for await (const line of createInterface(process.stdin)) {
  const { runId, ...conditions } = JSON.parse(line);
  const claim = await store.claim(runId, conditions);
  console.log(JSON.stringify(claim));
}
