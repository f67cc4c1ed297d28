// What a guard counts with: a limiter that was made elsewhere, or one rule in this process's memory.
import { combine, type RuleDecision } from "../decision.js";
import type { Duration } from "../duration.js";
import { show, wholeNumber } from "../errors.js";
import { type Key, keyFor } from "../key.js";
import type { Limiter } from "../limiter.js";
import { Reservation } from "../reservation.js";
import { slidingLog } from "../rule.js";
import type { MaybePromise, StoredRule } from "../store.js";
import { steadyClock, USUAL_KEYS } from "../stores/memory.js";
import { Meter, Table } from "../stores/table.js";
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

/** An exact window in memory: the meter that a memory store would keep for it, without the other verbs and stores. */
function countingBy(limit: number, window: Duration): Counter {
  const rule: StoredRule = { ...slidingLog({ limit, window }), path: "guard" };
  const meter = new Meter(rule, new Table(USUAL_KEYS), steadyClock);
  const tryAcquireSync = (key: Key, cost = 1) =>
    combine([meter.take(keyFor(rule, key), wholeNumber("INVALID_COST", "A cost", cost, 0))]);
  return {
    rules: [rule],
    sync: true,
    tryAcquireSync,
    async reserve(key, cost) {
      const decision = tryAcquireSync(key, cost);
      const [{ at }] = decision.rules as [RuleDecision];
      const charge = { rule, key: keyFor(rule, key), cost, partition: "", at };
      return new Reservation(decision, cost, async (actual = cost) =>
        meter.settle(steadyClock(), { ...charge, actual }),
      );
    },
  };
}
