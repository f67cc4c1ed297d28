import type { AlgorithmName } from "../algorithms/index.js";
import type { Duration } from "../duration.js";
import { SluiceError, show } from "../errors.js";
import { checkName, isLease, type RuleInput, rule } from "../rule.js";
import type { StoredRule } from "../store.js";
import { storedRules } from "../storedRules.js";
import { MICRO } from "./prices.js";

export type Unit = "requests" | "tokens" | "input-tokens" | "output-tokens" | "usd" | "concurrent";

/** One limit of a budget. */
export interface Limit {
  /** Names the limit in decisions and errors. */
  readonly name: string;
  readonly unit: Unit;
  /** How many of the unit per window, or at a time; dollars may have six decimals. */
  readonly limit: number;
  /** For all units but `"concurrent"`. */
  readonly window?: Duration;
  /** For how long what a call has reserved is held when its process says nothing any more: the budget's unless told. */
  readonly lease?: Duration;
  /** Which parts of a subject it counts by; without it, everyone together. */
  readonly by?: readonly string[];
  /** `"slidingLog"` unless told: exact. `"slidingCells"` where thousands of calls share one window. */
  readonly algorithm?: Exclude<AlgorithmName, "concurrent">;
  /** Whether tokens that were read from the provider's cache count: no, unless told. */
  readonly countCached?: boolean;
}

/** A limit that is ready to be charged. */
export interface StoredLimit {
  readonly unit: Unit;
  readonly rule: StoredRule;
  readonly countCached: boolean;
  /** Whether what it refuses ends the run it belongs to. */
  readonly endsRun: boolean;
}

const UNITS: readonly Unit[] = ["requests", "tokens", "input-tokens", "output-tokens", "usd", "concurrent"];

/**
 * Each limit counts under a place of its own, even where two are alike but for the unit: their costs
 * differ, and adding a limit must not disturb what another has counted.
 */
export function storedLimits(
  budget: string,
  limits: readonly Limit[],
  lease: number,
  endsRun = false,
): StoredLimit[] {
  if (!Array.isArray(limits) || limits.length === 0)
    refuse(`A budget needs at least one limit; got ${show(limits)}.`);
  const names = new Set(limits.map(({ name }) => name));
  if (names.size < limits.length) refuse("Two limits have one name; give each its own.");
  return limits.map((limit) => ({
    unit: limit.unit,
    rule: ruleOf(budget, lease, limit),
    countCached: limit.countCached ?? false,
    endsRun,
  }));
}

function ruleOf(
  budget: string,
  budgetLease: number,
  { name, unit, limit, window, lease, by, algorithm }: Limit,
): StoredRule {
  if (!UNITS.includes(unit)) refuse(`A limit's unit must be one of ${UNITS.join(", ")}; got ${show(unit)}.`);
  checkName("A limit's name", name);
  const isSlots = unit === "concurrent";
  if (isSlots !== (window === undefined)) {
    refuse(`Limit "${name}" counts ${unit}, so it ${isSlots ? "has a lease and no" : "needs a"} window.`);
  }
  const common = {
    name,
    limit: unit === "usd" ? Math.round(limit * MICRO) : limit,
    lease: lease ?? budgetLease,
    ...(by && { by }),
  };
  const input: RuleInput =
    window === undefined
      ? { ...common, algorithm: "concurrent" }
      : { ...common, algorithm: algorithm ?? "slidingLog", window };
  return storedRules(`${budget}~${name}`, rule(input))[0];
}

/** For how long the rule holds what is reserved; Infinity where it counts it at once. */
export function leaseOf(rule: StoredRule): number {
  if (rule.lease !== undefined) return rule.lease;
  return isLease(rule) ? rule.window : Infinity;
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_RULE", message);
}
