import { algorithmOf } from "../../algorithms/index.js";
import type { Cells } from "../../algorithms/slidingCells.js";
import type { Bucket } from "../../algorithms/tokenBucket.js";
import type { Charge, StoredRule } from "../../store.js";

/** A rule, or the exact windows of a limiter that share one log, as the script takes it. */
export interface Spec {
  /** The algorithm's letter, how many numbers follow, and these. */
  readonly args: readonly string[];
  /** The end of its Redis keys. */
  readonly suffix: string;
  readonly windows: number;
  /** What is held under a rule with a window and a lease has a key of its own; its end. */
  readonly heldSuffix: string | undefined;
}

/** Which charges of a call make up one of the script's. */
interface Part {
  readonly spec: Spec;
  readonly members: readonly number[];
}

interface Plan {
  readonly rules: readonly StoredRule[];
  /** For each charge, the first one that it shares a log with, or itself. */
  readonly firsts: readonly number[];
  readonly parts: readonly Part[];
}

/** Plans by the first rule of a call: one for each limiter, whose calls all have the same rules. */
const plans = new WeakMap<StoredRule, Plan[]>();

/** How the charges of a call are put to the script: the exact windows over one key as one log. */
export function planOf(charges: readonly Charge[]): readonly Part[] {
  const { rule } = charges[0];
  const known = plans.get(rule) ?? [];
  let plan = known.find((other) => isFor(other, charges));
  if (plan === undefined) {
    plan = makePlan(charges);
    known.push(plan);
    plans.set(rule, known);
  }
  return plan.parts;
}

function isFor({ rules, firsts }: Plan, charges: readonly Charge[]): boolean {
  return (
    rules.length === charges.length &&
    charges.every(({ rule }, c) => rule === rules[c] && firstOf(charges, c) === firsts[c])
  );
}

function makePlan(charges: readonly Charge[]): Plan {
  const firsts = charges.map((_, c) => firstOf(charges, c));
  const parts = [...new Set(firsts)].map((first) => {
    const members = firsts.flatMap((other, c) => (other === first ? [c] : []));
    return { spec: specOf(members.map((member) => charges[member].rule)), members };
  });
  return { rules: charges.map(({ rule }) => rule), firsts, parts };
}

function firstOf(charges: readonly Charge[], c: number): number {
  for (let first = 0; first < c; first++) {
    if (sharesLog(charges[first], charges[c])) return first;
  }
  return c;
}

/**
 * Whether two rules share a log must not hang on the key, or a rule would count one key in two logs:
 * so those that count by other parts never do, though some keys may have no other parts.
 */
function sharesLog(a: Charge, b: Charge): boolean {
  return (
    a.rule.layout === "compact" &&
    b.rule.layout === "compact" &&
    a.rule.lease === undefined &&
    b.rule.lease === undefined &&
    a.key === b.key &&
    a.partition === b.partition &&
    a.look === b.look &&
    a.rule.by?.join() === b.rule.by?.join() &&
    limiterOf(a.rule) === limiterOf(b.rule)
  );
}

function limiterOf(rule: StoredRule): string {
  return rule.path.slice(0, rule.path.indexOf("/"));
}

function specOf(rules: readonly StoredRule[]): Spec {
  const [rule] = rules;
  const { limit, window, lease } = rule;
  if (lease !== undefined) {
    const { lease: _, ...counted } = rule;
    const { args, suffix } = specOf([counted]);
    const [letter, , ...numbers] = args;
    return spec(`K${letter}`, [...numbers.map(Number), window, lease], suffix, 1, `${suffix}/held`);
  }
  switch (rule.algorithm) {
    case "slidingLog":
      if (rule.layout === "zset") return spec("Z", [limit, window], rule.path);
      return spec(
        "L",
        rules.flatMap((each) => [each.limit, each.window]),
        logPath(rules),
        rules.length,
      );
    case "slidingCells":
    case "slidingCounter": {
      const { cell, ring, strict } = algorithmOf(rule).prepare(rule) as Cells;
      return spec("C", [limit, window, cell, ring, strict ? 1 : 0], rule.path);
    }
    case "fixedWindow":
      return spec("F", [limit, window], rule.path);
    case "tokenBucket":
    case "leakyBucket": {
      const { inflow, token, burst } = algorithmOf(rule).prepare(rule) as Bucket;
      return spec("B", [inflow, token, burst], rule.path);
    }
    case "concurrent":
      return spec("H", [limit, window], rule.path);
  }
}

/** Rules of other names never share a log; a changed limit, window or order goes on with it. */
function logPath(rules: readonly StoredRule[]): string {
  return [limiterOf(rules[0]), ...rules.map((rule) => rule.name).sort(), "log"].join("/");
}

function spec(
  letter: string,
  numbers: readonly number[],
  suffix: string,
  windows = 1,
  heldSuffix?: string,
): Spec {
  return { args: [letter, String(numbers.length), ...numbers.map(String)], suffix, windows, heldSuffix };
}
