import { isLease } from "../../rule.js";
import type { StoredRule } from "../../store.js";

/** How long a lease may be spent, as a part of the window; an exact log counts for as much longer. */
const LEASED_PART = 1 / 250;
/** A shorter life than this is over before its answer is here. */
const SHORTEST_LEASE_MS = 2;
/** By how much the rates of two clocks may differ. */
const DRIFT = 1 / 1000;

/** How long at most this rule's permits may be spent after they were charged; 0 when never. */
export function leaseMsOf(rule: StoredRule): number {
  // Slots and what is held are given back one by one, and buckets fill all the time.
  const isKept = !isLease(rule) && !rule.algorithm.endsWith("Bucket");
  const isLeased = isKept && rule.layout !== "zset";
  const ms = Math.floor(rule.window * LEASED_PART);
  return isLeased && ms >= SHORTEST_LEASE_MS ? ms : 0;
}

/** The rule that the remote enforces, so that a permit spent late has not left the window early. */
export function enforced(rule: StoredRule): StoredRule {
  if (rule.algorithm !== "slidingLog") return rule;
  const ms = leaseMsOf(rule);
  return ms === 0 ? rule : Object.freeze({ ...rule, window: rule.window + ms });
}

/**
 * For how long a permit charged at `at`, by the store's clock, may be spent, by this process's clock
 * from before it asked: with an exact log, for as long as its window is stretched; otherwise within the
 * cell it was charged to, where it makes no difference when. `at` is rounded down, hence the 1.
 */
export function spendableMs(rule: StoredRule, at: number): number {
  const ms = leaseMsOf(rule);
  if (rule.algorithm === "slidingLog") return onAnyClock(ms);
  const cell = Math.ceil(rule.window / (rule.cells ?? 1));
  return onAnyClock(Math.min(ms, cell - (at % cell) - 1));
}

/** As much of a time by the store's clock as has surely not passed by another's. */
export function onAnyClock(ms: number): number {
  return ms * (1 - DRIFT);
}
