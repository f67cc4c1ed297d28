import { expect, test } from "vitest";
import { createLimiter, type LimiterOptions } from "./limiter.js";
import { type BudgetOptions, createBudget } from "./llm/index.js";
import { slidingLog } from "./rule.js";
import { memoryStore } from "./stores/memory.js";
import { redisStore } from "./stores/redis/index.js";
import { type ResilientOptions, resilient } from "./stores/resilient.js";
import { tiered } from "./stores/tiered.js";

test("an option that there is not is refused, with those that there are", () => {
  const store = memoryStore();
  const client = { evalsha: async () => [], eval: async () => [] };
  const limits = [{ name: "a", unit: "requests", limit: 1, window: "1m" }] as const;
  const made: Record<string, () => unknown> = {
    createLimiter: () =>
      createLimiter({ rules: slidingLog({ limit: 1, window: "1s" }), stor: store } as LimiterOptions),
    createBudget: () => createBudget({ limits, stor: store } as BudgetOptions),
    redisStore: () => redisStore(client, { prefx: "x" } as object),
    resilient: () => resilient(store, { onOutage: "open", deadline: 5 } as ResilientOptions),
    tiered: () => tiered(store, { lease: true } as object),
  };
  for (const [what, make] of Object.entries(made)) {
    expect(make, what).toThrow(new RegExp(`^${what} has no option "\\w+"; it has \\w+, `));
  }
});
