import { vi } from "vitest";
import { type Budget, type BudgetOptions, createBudget, type Limit } from "../src/llm/index.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { onVirtualTime } from "./virtualTime.js";

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

/** Makes the tests of a file run on virtual time, and closes their budgets. */
export function budgetsOnVirtualTime(): void {
  onVirtualTime(() => Promise.all(opened.splice(0).map((budget) => budget.close())));
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
