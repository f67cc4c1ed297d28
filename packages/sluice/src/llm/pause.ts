import { slidingLog } from "../rule.js";
import type { Charge, Settlement, StoredRule } from "../store.js";
import { storedRules } from "../storedRules.js";

/** A pause ends after this long at the latest; a provider that still refuses then says so again. */
const LONGEST_PAUSE = 3_600_000;

/**
 * A pause is a log of one per hour that calls only look at. To pause until a time is to record one
 * exactly an hour before it; of several pauses the latest counts, and none of them adds to another.
 */
export function pauseRule(budget: string): StoredRule {
  const window = LONGEST_PAUSE;
  return storedRules(`${budget}~upstream`, slidingLog({ name: "upstream", limit: 1, window }))[0];
}

export function pauseSettlement(charge: Charge, now: number, ms: number): Settlement {
  const whole = Math.min(LONGEST_PAUSE, Math.max(1, Math.ceil(ms)));
  return { ...charge, cost: 0, actual: 1, at: now + whole - LONGEST_PAUSE };
}
