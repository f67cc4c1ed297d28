// What a guard counts with: a limiter that was made elsewhere, or one rule in this process's memory.
import { know } from "../algorithms/index.js";
import { slidingLog } from "../algorithms/slidingLog.js";
import { combine, type RuleDecision } from "../decision.js";
import { type Duration, milliseconds, shortest } from "../duration.js";
import { show, wholeNumber } from "../errors.js";
import { type Key, keyFor } from "../key.js";
import type { Limiter } from "../limiter.js";
import type { Reservation } from "../reservation.js";
import type { MaybePromise, StoredRule } from "../store.js";
import { steadyClock, USUAL_KEYS } from "../stores/memory.js";
import { Meter, Table } from "../stores/table.js";
import { type GuardOptions, refuseOption } from "./options.js";

/** As much of a reservation as a guard uses. */
export type Reserved = Pick<Reservation, "decision" | "settle">;

/** As much of a limiter as a guard uses. */
export interface Counter extends Pick<Limiter, "rules" | "sync" | "tryAcquireSync"> {
  reserve(key: Key, cost: number): Promise<Reserved>;
}

export type CounterOption<Request> = Counter | ((request: Request) => MaybePromise<Counter>);

/** What a guard with these options counts with; a rule becomes a counter of its own. */
export function counterFrom<Request>(options: GuardOptions<Request>): CounterOption<Request> {
  const { limiter, limit, window } = options ?? {};
  const isLimiter = typeof limiter === "function" || typeof limiter?.reserve === "function";
  if (limiter === undefined && limit !== undefined && window !== undefined) return countingBy(limit, window);
  if (isLimiter && limit === undefined && window === undefined) return limiter;
  return refuseOption(
    "A guard takes a limiter, made by createLimiter or chosen by a function, or a limit and a window; " +
      `got limiter ${show(limiter)}, limit ${show(limit)}, window ${show(window)}`,
  );
}

/** An exact window in memory: the meter that a memory store would keep for it, without the other verbs and stores. */
function countingBy(limit: number, window: Duration): Counter {
  const ms = milliseconds("A guard's window", window);
  const rule: StoredRule = {
    algorithm: "slidingLog",
    name: shortest(ms),
    limit: wholeNumber("INVALID_RULE", "A guard's limit", limit, 1),
    window: ms,
    path: "guard",
  };
  know("slidingLog", slidingLog);
  const meter = new Meter(rule, new Table(USUAL_KEYS), steadyClock);
  const tryAcquireSync = (key: Key, cost = 1) =>
    combine([meter.decide(keyFor(rule, key), wholeNumber("INVALID_COST", "A cost", cost, 0), true)]);
  return {
    rules: [rule],
    sync: true,
    tryAcquireSync,
    async reserve(key, cost) {
      const decision = tryAcquireSync(key, cost);
      const [{ at }] = decision.rules as [RuleDecision];
      const charge = { rule, key: keyFor(rule, key), cost, partition: "", at };
      const settle = async (actual: number) => {
        wholeNumber("INVALID_COST", "A cost", actual, 0);
        meter.settle(steadyClock(), { ...charge, actual });
      };
      return { decision, settle };
    },
  };
}
