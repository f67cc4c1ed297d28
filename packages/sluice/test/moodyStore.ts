import { vi } from "vitest";
import { createLimiter } from "../src/limiter.js";
import { slidingLog } from "../src/rule.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type ResilientOptions, resilient } from "../src/stores/resilient.js";

type Mood = "well" | "hung" | "failing";

/** A store as far away as Redis whose health a test sets; it counts how often it was asked. */
export function moodyStore() {
  const memory = memoryStore();
  const waiting: (() => void)[] = [];
  const world = { mood: "well" as Mood, asked: 0, error: new Error("READONLY") as unknown };
  async function answer<T>(call: () => T): Promise<T> {
    world.asked++;
    if (world.mood === "failing") throw world.error;
    if (world.mood === "hung") await new Promise<void>((resolve) => waiting.push(resolve));
    return call();
  }
  const store: Store = {
    sync: false,
    decide: (charges, commit) => answer(() => memory.decide(charges, commit) as never),
    settle: (settlements) => answer(() => memory.settle(settlements) as boolean),
    status: (charges) => answer(() => memory.status(charges) as never),
    count: (charges, from, to) => answer(() => memory.count(charges, from, to) as never),
    reset: (charges) => answer(() => memory.reset(charges) as undefined),
    close: () => {},
  };
  const wake = () => {
    world.mood = "well";
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { world, store, wake };
}

/** A limiter on such a store. */
export function limited(options: Partial<ResilientOptions> = {}, limit = 10) {
  const moody = moodyStore();
  const store = resilient(moody.store, { onOutage: "closed", ...options });
  const limiter = createLimiter({ name: "test", store, rules: slidingLog({ limit, window: 60_000 }) });
  return { ...moody, limiter, resilientStore: store };
}

/** Calls until the breaker has opened, in virtual time. */
export async function breakDown(
  limiter: ReturnType<typeof limited>["limiter"],
  deadlineMs = 50,
): Promise<void> {
  const calls = Array.from({ length: 5 }, () => limiter.peek("down"));
  await vi.advanceTimersByTimeAsync(deadlineMs + 1);
  await Promise.all(calls);
}
