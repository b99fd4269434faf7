import type { ModelMessage } from "@tanstack/ai";

export declare const messages: {
  loadThread: (threadId: string) => Promise<ModelMessage[]>;
  saveThread: (threadId: string, messages: ModelMessage[]) => Promise<void>;
};
