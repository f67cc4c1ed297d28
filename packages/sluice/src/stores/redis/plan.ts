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
  /** What is held under a rule with a window and a lease has a key of its own, unless it is in a log; its end. */
  readonly heldSuffix: string | undefined;
}

/** Which charges of a call make up one of the script's. */
export interface Part {
  readonly spec: Spec;
  readonly members: readonly number[];
}

interface Plan {
  readonly rules: readonly StoredRule[];
  /** The pairs of charges that share a log where they have the same key, and whether these have. */
  readonly pairs: readonly { readonly a: number; readonly b: number; readonly same: boolean }[];
  readonly parts: readonly Part[];
}

/** Plans by the first rule of a call: one for each limiter, whose calls all have the same rules. */
const plans = new WeakMap<StoredRule, Plan[]>();

/** How the charges of a call are put to the script: the exact windows over one key as one log. */
export function planOf(charges: readonly Charge[]): readonly Part[] {
  const { rule } = charges[0];
  let known = plans.get(rule);
  if (known === undefined) {
    known = [];
    plans.set(rule, known);
  }
  for (const plan of known) if (isFor(plan, charges)) return plan.parts;
  const plan = makePlan(charges);
  known.push(plan);
  return plan.parts;
}

function isFor({ rules, pairs }: Plan, charges: readonly Charge[]): boolean {
  if (rules.length !== charges.length) return false;
  for (let c = 0; c < rules.length; c++) if (rules[c] !== charges[c].rule) return false;
  for (const { a, b, same } of pairs) if (sameKey(charges[a], charges[b]) !== same) return false;
  return true;
}

function makePlan(charges: readonly Charge[]): Plan {
  const rules = charges.map(({ rule }) => rule);
  const pairs = rules.flatMap((rule, b) =>
    rules.slice(0, b).flatMap((other, a) => {
      return mayShareLog(other, rule) ? [{ a, b, same: sameKey(charges[a], charges[b]) }] : [];
    }),
  );
  const firsts = rules.map((_, c) => pairs.find(({ b, same }) => same && b === c)?.a ?? c);
  const parts = [...new Set(firsts)].map((first) => {
    const members = firsts.flatMap((other, c) => (other === first ? [c] : []));
    return { spec: specOf(members.map((member) => rules[member])), members };
  });
  return { rules, pairs, parts };
}

function sameKey(a: Charge, b: Charge): boolean {
  return a.key === b.key && a.partition === b.partition && a.look === b.look;
}

/**
 * Whether two rules share a log must not hang on the key, or a rule would count one key in two logs:
 * so those that count by other parts never do, though some keys may have no other parts.
 */
function mayShareLog(a: StoredRule, b: StoredRule): boolean {
  return (
    a.layout === "compact" &&
    b.layout === "compact" &&
    a.lease === undefined &&
    b.lease === undefined &&
    a.by?.join() === b.by?.join() &&
    limiterOf(a) === limiterOf(b)
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
    const [letter, , ...texts] = args;
    const numbers = [...texts.map(Number), window, lease];
    // A log that holds has another layout than one that does not, and tells nothing of its window while it only holds.
    return letter === "L"
      ? spec("R", numbers, `${suffix}/${window}`)
      : spec(`K${letter}`, numbers, suffix, 1, `${suffix}/held`);
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
