import { vi } from "vitest";
import type { Decision } from "../src/decision.js";
import { createLimiter, type Limiter } from "../src/limiter.js";
import { slidingLog } from "../src/rule.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";

/** Two per second, on a store whose questions are counted. */
export function twoPerSecond(options: { maxWaiting?: number; store?: Store } = {}) {
  const { store = memoryStore({ clock: Date.now }), ...rest } = options;
  const asked = vi.spyOn(store, "decide");
  const limiter = createLimiter({ rules: slidingLog({ limit: 2, window: 1000 }), store, ...rest });
  return { limiter, store, asked };
}

/** Notes who was admitted when, and who was refused with which code. */
export function diary(limiter: Limiter) {
  const began = Date.now();
  const entries: string[] = [];
  const acquire = (who: string, options = {}, key = "a"): Promise<Decision | undefined> =>
    limiter.acquire(key, options).then(
      (decision) => {
        entries.push(`${who} at ${Date.now() - began}`);
        return decision;
      },
      (error) => {
        entries.push(`${who}: ${error.code ?? error.name} at ${Date.now() - began}`);
        return undefined;
      },
    );
  return { entries, acquire };
}
