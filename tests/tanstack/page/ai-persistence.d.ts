// What the page uses of @tanstack/ai-persistence, of which the tests need the types alone.
declare module "@tanstack/ai-persistence" {
  import type { ChatMiddleware, ModelMessage, RunStore } from "@tanstack/ai";
  import type { solidInterruptStore } from "./solid-runs.js";

  interface Stores {
    messages: {
      loadThread: (threadId: string) => Promise<ModelMessage[]>;
      saveThread: (threadId: string, messages: ModelMessage[]) => Promise<void>;
    };
    runs: RunStore;
    interrupts: ReturnType<typeof solidInterruptStore>;
  }
  export function defineAIPersistence(given: { stores: Stores }): { stores: Stores };
  export function withPersistence(persistence: { stores: Stores }): ChatMiddleware;
}
