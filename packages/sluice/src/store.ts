import type { RuleDecision, RuleStatus } from "./decision.js";
import type { Rule } from "./rule.js";

/** A value now, or later: local stores answer at once, remote ones by a promise. */
export type MaybePromise<T> = T | Promise<T>;

/** A rule with the place its counts live at, unique to limiter, rule, algorithm and window. */
export interface StoredRule extends Rule {
  readonly path: string;
}

/** One rule applied to one key. All the charges of one call are decided together; no two have the same rule and key. */
export interface Charge {
  readonly rule: StoredRule;
  readonly key: string;
  readonly cost: number;
  /** The same for all charges of one call: a store spread over nodes keeps these together. */
  readonly partition: string;
  /**
   * Names the request where the rule keeps names or leases; unique, no part of another, and the same when it is
   * settled. A rule with a window and a lease holds what has an id for the lease, until it is settled, and counts
   * what has none for good.
   */
  readonly id?: string | undefined;
  /** Only looks: the cost must fit for the call to be allowed, and is not charged. */
  readonly look?: boolean;
}

/** What becomes of a cost that was charged at `at`. */
export interface Settlement extends Charge {
  readonly at: number;
  /** What it really was, from 0 on. Without it nothing changes but the lease, which begins anew unless it has ended. */
  readonly actual?: number;
  /** As the decision that charged it said: what a policy admitted in an outage is not in the store. */
  readonly degraded?: RuleDecision["degraded"];
}

/** Settles what `decisions` charged, each at its own time and place, as `how` says; undefined leaves it. */
export function settlementsOf(
  charges: readonly Charge[],
  decisions: readonly RuleDecision[],
  how: (charge: Charge, c: number) => Pick<Settlement, "actual"> | undefined,
): Settlement[] {
  return charges.flatMap((charge, c) => {
    const { at, degraded } = decisions[c];
    const settled = how(charge, c);
    if (settled === undefined) return [];
    return { ...charge, ...settled, at, ...(degraded && { degraded }) };
  });
}

/** How much was counted in a period, and how finely the algorithm can tell. */
export interface Count {
  readonly count: number;
  /**
   * The period really covered, both ends included: what was asked, widened to the resolution and cut to what is kept.
   * Where nothing of it is kept, `from` is after `to`.
   */
  readonly from: number;
  readonly to: number;
  readonly resolutionMs: number;
}

/** One request of a log that keeps them by name. */
export interface Entry {
  readonly at: number;
  readonly id: string;
  readonly cost: number;
}

/** `decide` of one charge that has no name. */
export interface Taker {
  decide(key: string, cost: number, commit: boolean): RuleDecision;
}

/**
 * Makes the rules' arithmetic atomic and keeps their state. The charges of one call differ in
 * rule or key, and every call about a key carries all of them, so that a store may keep the counts
 * of several rules in one place. Write one by following CONTRIBUTING.md and running `conformance` of "sluice/testing".
 */
export interface Store {
  /** True when no method answers by a promise, so that `tryAcquireSync` works. */
  readonly sync: boolean;
  /** Checks every charge; when all fit and `commit` is set, charges all of them. One atomic step. */
  decide(charges: readonly Charge[], commit: boolean): MaybePromise<readonly RuleDecision[]>;
  /**
   * What decides and charges one rule's costs one at a time, where the store is local: the commonest call, with
   * nothing made for it but its answer.
   */
  taker?(rule: StoredRule): Taker;
  /**
   * Makes costs what they really were without asking, each at its own time, where that time has come and
   * still counts. False when a lease was to begin anew that has ended.
   */
  settle(settlements: readonly Settlement[]): MaybePromise<boolean>;
  /** What each rule holds for its key; costs are ignored. */
  status(charges: readonly Charge[]): MaybePromise<readonly RuleStatus[]>;
  /** What each rule counted from `from` to `to`, both included; undefined where it keeps no history. Costs are ignored. */
  count(charges: readonly Charge[], from: number, to: number): MaybePromise<readonly (Count | undefined)[]>;
  /** The newest requests from `from` to `to`, oldest first, where the rule's log keeps them by name. */
  entries?(charge: Charge, from: number, to: number, most: number): MaybePromise<readonly Entry[]>;
  /** Forgets what was counted; costs are ignored. */
  reset(charges: readonly Charge[]): MaybePromise<void>;
  /** Frees what the store itself opened. */
  close(): MaybePromise<void>;
}
