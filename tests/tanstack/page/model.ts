// What the page calls yours.
import type { AnyTextAdapter } from "@tanstack/ai";

export declare const adapter: AnyTextAdapter;
