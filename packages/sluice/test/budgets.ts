import { afterEach, beforeEach, expect, vi } from "vitest";
import { type Budget, type BudgetOptions, createBudget, type Limit } from "../src/llm/index.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";

const PRICES = { small: { input: 1, output: 4, cachedInput: 0.1 } };

export const tpm = (limit: number): Limit => ({
  name: "tpm",
  unit: "tokens",
  limit,
  window: "1m",
  by: ["user"],
});
export const parallel = (limit: number): Limit => ({
  name: "parallel",
  unit: "concurrent",
  limit,
  lease: "2m",
  by: ["user"],
});

const opened: Budget[] = [];

/** Makes the tests of a file run on virtual time, and sees to it that closed budgets leave no timer behind. */
export function onVirtualTime(): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_700_000_000_000 });
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((budget) => budget.close()));
    expect(vi.getTimerCount(), "timers left behind").toBe(0);
    vi.useRealTimers();
  });
}

/** A budget on virtual time, with spies on its store, and what it has counted by limit. */
export function budgetOf(limits: readonly Limit[], options: Partial<BudgetOptions> = {}) {
  const store: Store = options.store ?? memoryStore({ clock: Date.now });
  const decide = vi.spyOn(store, "decide");
  const settle = vi.spyOn(store, "settle");
  const budget = createBudget({ store, limits, prices: PRICES, ...options });
  opened.push(budget);
  const used = async (subject = {}) => {
    const held = await budget.status({ user: "u", ...subject });
    return Object.fromEntries(held.map(({ rule, count }) => [rule, count]));
  };
  return { budget, store, used, decide, settle };
}
