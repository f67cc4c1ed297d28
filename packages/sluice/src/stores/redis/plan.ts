import { algorithms } from "../../algorithms/index.js";
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
}

/** Which charges of a call make up one of the script's. */
interface Part {
  readonly spec: Spec;
  readonly members: readonly number[];
}

/** Plans by the first rule of a call and by which of its charges have a key in common. */
const plans = new WeakMap<StoredRule, Map<string, readonly Part[]>>();

/** How the charges of a call are put to the script: the exact windows over one key as one log. */
export function planOf(charges: readonly Charge[]): readonly Part[] {
  const { rule } = charges[0];
  const known = plans.get(rule) ?? new Map<string, readonly Part[]>();
  plans.set(rule, known);
  const pattern = charges.length === 1 ? "" : keyPattern(charges);
  let plan = known.get(pattern);
  if (plan === undefined) {
    plan = makePlan(charges);
    known.set(pattern, plan);
  }
  return plan;
}

/** For each charge, its rule's path and the first charge with the same key. */
function keyPattern(charges: readonly Charge[]): string {
  return charges
    .map(({ rule, key }) => `${rule.path} ${charges.findIndex((other) => other.key === key)}`)
    .join("\n");
}

function makePlan(charges: readonly Charge[]): Part[] {
  const parts: Part[] = [];
  const taken = new Set<number>();
  charges.forEach((charge, c) => {
    if (taken.has(c)) return;
    const members = charges.flatMap((other, o) => (o === c || sharesLog(charge, other) ? [o] : []));
    for (const member of members) taken.add(member);
    parts.push({ spec: specOf(members.map((member) => charges[member].rule)), members });
  });
  return parts;
}

function sharesLog(a: Charge, b: Charge): boolean {
  const logs = a.rule.layout === "compact" && b.rule.layout === "compact";
  return logs && a.key === b.key && a.partition === b.partition && limiterOf(a.rule) === limiterOf(b.rule);
}

function limiterOf(rule: StoredRule): string {
  return rule.path.slice(0, rule.path.indexOf("/"));
}

function specOf(rules: readonly StoredRule[]): Spec {
  const [rule] = rules;
  const { limit, window } = rule;
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
      const { cell, ring, strict } = algorithms[rule.algorithm].prepare(rule) as Cells;
      return spec("C", [limit, window, cell, ring, strict ? 1 : 0], rule.path);
    }
    case "fixedWindow":
      return spec("F", [limit, window], rule.path);
    case "tokenBucket":
    case "leakyBucket": {
      const { inflow, token, burst } = algorithms[rule.algorithm].prepare(rule) as Bucket;
      return spec("B", [inflow, token, burst], rule.path);
    }
  }
}

/** Rules of other names never share a log; a changed limit or window goes on with it. */
function logPath(rules: readonly StoredRule[]): string {
  return [limiterOf(rules[0]), ...rules.map((rule) => rule.name), "log"].join("/");
}

function spec(letter: string, numbers: readonly number[], suffix: string, windows = 1): Spec {
  return { args: [letter, String(numbers.length), ...numbers.map(String)], suffix, windows };
}
