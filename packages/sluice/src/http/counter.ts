// What a guard counts with: a limiter that was made elsewhere, or one rule in this process's memory.
import { combine, type RuleDecision } from "../decision.js";
import type { Duration } from "../duration.js";
import { show, wholeNumber } from "../errors.js";
import { type Key, keyFor } from "../key.js";
import type { Limiter } from "../limiter.js";
import { Reservation } from "../reservation.js";
import { slidingLog } from "../rule.js";
import { type Charge, type MaybePromise, type StoredRule, settlementsOf } from "../store.js";
import { storedRules } from "../storedRules.js";
import { memoryStore } from "../stores/memory.js";
import { type GuardOptions, refuseOption } from "./options.js";

/** As much of a limiter as a guard uses. */
export type Counter = Pick<Limiter, "rules" | "sync" | "tryAcquireSync" | "reserve">;

export type CounterOption<Request> = Counter | ((request: Request) => MaybePromise<Counter>);

/** What a guard with these options counts with; a rule becomes a counter of its own. */
export function counterFrom<Request>(options: GuardOptions<Request>): CounterOption<Request> {
  const { limiter, limit, window } = options;
  if (limiter === undefined) {
    if (limit === undefined || window === undefined) {
      refuseOption('A guard needs a limiter, or a limit and a window, such as { limit: 100, window: "1m" }');
    }
    return countingBy(limit, window);
  }
  if (limit !== undefined || window !== undefined)
    refuseOption("A guard takes a limiter or a limit, not both");
  if (typeof limiter !== "function" && typeof limiter?.reserve !== "function") {
    refuseOption(
      `limiter must be made by createLimiter, or be a function that chooses one; got ${show(limiter)}`,
    );
  }
  return limiter;
}

/** An exact window in memory. `createLimiter` would bring along all its other verbs, at 2 kB. */
function countingBy(limit: number, window: Duration): Counter {
  const store = memoryStore();
  const rules = storedRules("guard", slidingLog({ limit, window }));
  const rule = rules[0] as StoredRule;
  const charge = (key: Key, cost: number): Charge[] => [
    { rule, key: keyFor(rule, key), cost: wholeNumber("INVALID_COST", "A cost", cost, 0), partition: "" },
  ];
  const decide = (charges: readonly Charge[]) =>
    combine(store.decide(charges, true) as readonly RuleDecision[]);
  return {
    rules,
    sync: true,
    tryAcquireSync: (key, cost = 1) => decide(charge(key, cost)),
    async reserve(key, cost) {
      const charges = charge(key, cost);
      const decision = decide(charges);
      return new Reservation(decision, cost, async (actual = cost) =>
        store.settle(settlementsOf(charges, decision.rules, () => ({ actual }))),
      );
    },
  };
}
