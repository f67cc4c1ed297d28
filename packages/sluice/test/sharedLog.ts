import type { RuleDecision, RuleStatus } from "../src/decision.js";
import type { Rule } from "../src/rule.js";
import type { Count } from "../src/store.js";

/**
 * What the exact windows of a limiter count of one key, as one list of costs that is scanned in full. It outlives
 * the rules: those that ask next may have other limits, other windows or another order.
 */
export class SharedLog {
  /** One for each millisecond that holds something, in the order of time. */
  #entries: { readonly at: number; readonly cost: number }[] = [];
  /** By window: the latest of what had left it when something was written. */
  readonly #left = new Map<number, number>();
  /** The latest of what had left every window then. */
  #dropped = -Infinity;

  /** Time does not go back behind what is counted. */
  #timeAt(clock: number): number {
    return Math.max(clock, this.#newest);
  }

  /** Whether time went back to where something counts that had left a window: a store may have dropped it or not. */
  isVague(rules: readonly Rule[], clock: number): boolean {
    return rules.some(({ window }) => {
      const left = Math.max(this.#dropped, this.#left.get(window) ?? -Infinity);
      return this.#timeAt(clock) - window < left;
    });
  }

  decide(rules: readonly Rule[], clock: number, cost: number, commit: boolean): readonly RuleDecision[] {
    const time = this.#timeAt(clock);
    const waits = rules.map((rule) => this.#wait(rule, time, cost));
    if (commit && cost > 0 && waits.every((wait) => wait === 0)) this.#charge(rules, time, time, cost);
    return rules.map((rule, r) => ({
      rule: rule.name,
      allowed: waits[r] === 0,
      limit: rule.limit,
      remaining: Math.max(0, rule.limit - this.#count(rule, time)),
      retryAfterMs: waits[r] === 0 ? 0 : waits[r] + time - clock,
      resetAfterMs: Math.max(0, this.#newest + rule.window - clock),
      at: time,
    }));
  }

  /** Changes what was charged at `at`, where that time has come; one that has left every window is past changing. */
  settle(rules: readonly Rule[], clock: number, at: number, difference: number): void {
    const time = this.#timeAt(clock);
    if (time - at >= longestOf(rules)) this.#dropped = Math.max(this.#dropped, at);
    else if (at <= time) this.#charge(rules, time, at, difference);
  }

  status(rules: readonly Rule[], clock: number): readonly RuleStatus[] {
    const time = this.#timeAt(clock);
    return rules.map((rule) => {
      const live = this.#live(rule, time);
      return {
        rule: rule.name,
        count: this.#count(rule, time),
        limit: rule.limit,
        remaining: Math.max(0, rule.limit - this.#count(rule, time)),
        oldestAt: live.at(0)?.at,
        newestAt: live.at(-1)?.at,
        resetAfterMs: Math.max(0, this.#newest + rule.window - clock),
      };
    });
  }

  count(rules: readonly Rule[], clock: number, from: number, to: number): Count {
    const time = this.#timeAt(clock);
    const [first, last] = [Math.max(from, time - longestOf(rules) + 1), Math.min(to, time)];
    const inside = this.#entries.filter(({ at }) => first <= at && at <= last);
    return { count: sumOf(inside), from: first, to: last, resolutionMs: 1 };
  }

  get #newest(): number {
    return this.#entries.at(-1)?.at ?? 0;
  }

  #live({ window }: Rule, time: number): { readonly at: number; readonly cost: number }[] {
    return this.#entries.filter(({ at }) => time - at < window);
  }

  #count(rule: Rule, time: number): number {
    return sumOf(this.#live(rule, time));
  }

  #wait(rule: Rule, time: number, cost: number): number {
    let over = cost - (rule.limit - this.#count(rule, time));
    if (cost === 0 || over <= 0) return 0;
    if (cost > rule.limit) return Infinity;
    for (const entry of this.#live(rule, time)) {
      over -= entry.cost;
      if (over <= 0) return entry.at + rule.window - time;
    }
    throw new Error("What is over the limit is counted.");
  }

  #charge(rules: readonly Rule[], time: number, at: number, cost: number): void {
    const old = this.#entries.find((entry) => entry.at === at)?.cost ?? 0;
    const earlier = this.#entries.filter((entry) => entry.at < at);
    const later = this.#entries.filter((entry) => entry.at > at);
    this.#entries = [...earlier, ...(old + cost > 0 ? [{ at, cost: old + cost }] : []), ...later];
    const isNewest = this.#newest === at;
    for (const rule of rules) {
      // Where a window is empty and stays so, what has left it is found again.
      if (this.#count(rule, time) > 0) this.#left.set(rule.window, this.#leftBy(time, rule.window));
    }
    if (!isNewest) return;
    this.#dropped = Math.max(this.#dropped, this.#leftBy(time, longestOf(rules)));
    this.#entries = this.#entries.filter((entry) => entry.at > this.#dropped);
  }

  /** The latest that has left a window. */
  #leftBy(time: number, window: number): number {
    return this.#entries.findLast(({ at }) => time - at >= window)?.at ?? this.#left.get(window) ?? -Infinity;
  }
}

function longestOf(rules: readonly Rule[]): number {
  return Math.max(...rules.map(({ window }) => window));
}

function sumOf(entries: readonly { readonly cost: number }[]): number {
  return entries.reduce((sum, { cost }) => sum + cost, 0);
}
