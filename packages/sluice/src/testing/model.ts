import type { Decision, RuleDecision, RuleStatus } from "../decision.js";
import type { Key } from "../key.js";
import type { Rule } from "../rule.js";
import type { Count } from "../store.js";
import { firstTime, type Oracle, oracleFor } from "./oracles.js";

/** What a limiter must answer: one oracle for each rule and key, all of them charged or none. */
export class Model {
  readonly #rules: readonly Rule[];
  readonly #lookBackMs: number;
  readonly #oracles = new Map<string, Oracle>();

  constructor(rules: readonly Rule[], lookBackMs: number) {
    this.#rules = rules;
    this.#lookBackMs = lookBackMs;
  }

  /** `id` tells the request apart from all others; `holds` when it is to be settled. */
  decide(clock: number, key: Key, cost: number, commit: boolean, id: string, holds: boolean): Decision {
    const asked = this.#rules.map((rule) => {
      const oracle = this.#oracle(rule, key);
      const at = Math.max(clock, oracle.newest);
      const fitsAt = cost > mostAtOnce(rule) ? Infinity : firstTime(at, (time) => oracle.fits(time, cost));
      return { rule, oracle, at, retryAfterMs: fitsAt === at ? 0 : fitsAt - clock };
    });
    const allowed = asked.every(({ retryAfterMs }) => retryAfterMs === 0);
    if (allowed && commit) {
      for (const { rule, oracle, at } of asked) {
        oracle.charge(at, at, cost, rule.lease === undefined || holds ? id : undefined);
      }
    }
    const rules = asked.map(({ rule, oracle, at, retryAfterMs }) => ({
      rule: rule.name,
      allowed: retryAfterMs === 0,
      limit: rule.limit,
      remaining: oracle.remaining(at),
      retryAfterMs,
      resetAfterMs: emptyAfter(oracle, clock, at),
      at,
    }));
    const { at: _, ...binding } = bindingOf(rules);
    return { ...binding, allowed, rules };
  }

  /** Makes a cost that was admitted by the decision `taken` what it really was; slots are given back. */
  settle(clock: number, key: Key, taken: Decision, cost: number, actual: number, id: string): void {
    this.#rules.forEach((rule, r) => {
      const oracle = this.#oracle(rule, key);
      oracle.settle(Math.max(clock, oracle.newest), taken.rules[r].at, cost, actual, id);
    });
  }

  /** Begins the leases of a request anew; false when one has ended. */
  renew(clock: number, key: Key, taken: Decision, id: string): boolean {
    const held = this.#rules.map((rule, r) => {
      const oracle = this.#oracle(rule, key);
      return oracle.renew(Math.max(clock, oracle.newest), taken.rules[r].at, id);
    });
    return held.every(Boolean);
  }

  status(clock: number, key: Key): readonly RuleStatus[] {
    return this.#rules.map((rule) => {
      const oracle = this.#oracle(rule, key);
      const at = Math.max(clock, oracle.newest);
      return {
        rule: rule.name,
        limit: rule.limit,
        remaining: oracle.remaining(at),
        resetAfterMs: emptyAfter(oracle, clock, at),
        ...oracle.held(at),
      };
    });
  }

  /** By the rule that reaches back furthest, and among those the finest; undefined when all are buckets. */
  count(clock: number, key: Key, from: number, to: number): Count | undefined {
    let best: Count | undefined;
    for (const rule of this.#rules) {
      const oracle = this.#oracle(rule, key);
      const count = oracle.count(Math.max(clock, oracle.newest), from, to);
      if (count === undefined) continue;
      const isBetter =
        best === undefined ||
        count.from < best.from ||
        (count.from === best.from && count.resolutionMs < best.resolutionMs);
      if (isBetter) best = count;
    }
    return best;
  }

  reset(key: Key): void {
    for (const rule of this.#rules) this.#oracles.delete(placeOf(rule, key));
  }

  /** Whether some rule counts both keys as one. */
  countsTogether(key: Key, other: Key): boolean {
    return this.#rules.some((rule) => placeOf(rule, key) === placeOf(rule, other));
  }

  /**
   * Whether something that this key holds counts at `from` but has gone at `to`. After the clock
   * went from `to` back to `from`, a store may have dropped it or not: both are right.
   */
  forgetsBetween(key: Key, from: number, to: number): boolean {
    return this.#rules.some((rule) => this.#oracle(rule, key).forgetsBetween(from, to));
  }

  #oracle(rule: Rule, key: Key): Oracle {
    const place = placeOf(rule, key);
    let oracle = this.#oracles.get(place);
    if (oracle === undefined) {
      oracle = oracleFor(rule, this.#lookBackMs);
      this.#oracles.set(place, oracle);
    }
    return oracle;
  }
}

/** One text per rule and the parts of the key that it counts by. */
function placeOf(rule: Rule, key: Key): string {
  if (typeof key === "string") return `${rule.name} ${key}`;
  const names = rule.by ?? Object.keys(key).sort();
  return `${rule.name} ${JSON.stringify(names.map((name) => [name, String(key[name])]))}`;
}

function mostAtOnce(rule: Rule): number {
  if (rule.algorithm === "leakyBucket") return rule.burst ?? 1;
  return rule.burst ?? rule.limit;
}

function emptyAfter(oracle: Oracle, clock: number, at: number): number {
  return oracle.isEmpty(at) ? 0 : firstTime(at, (time) => oracle.isEmpty(time)) - clock;
}

/** The rule that denies longest or, when all allow, the one with the least left; the first among equals. */
function bindingOf(rules: readonly RuleDecision[]): RuleDecision {
  const longest = Math.max(...rules.map((rule) => rule.retryAfterMs));
  const deniers = rules.filter((rule) => rule.retryAfterMs === longest);
  const least = Math.min(...deniers.map((rule) => rule.remaining));
  return deniers.find((rule) => rule.remaining === least) as RuleDecision;
}
