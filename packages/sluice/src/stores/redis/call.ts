import type { Charge } from "../../store.js";
import { planOf, type Spec } from "./plan.js";

/** One Redis key and what is done with it; `members` are the charges it answers, in order. */
export interface Unit {
  readonly spec: Spec;
  readonly key: string;
  readonly heldKey: string | undefined;
  readonly x: number;
  readonly y: number;
  readonly id: string;
  readonly members: readonly number[];
}

/** The operations of the script, by the letters that driver.lua explains. */
export type Operation = "a" | "p" | "s" | "t" | "c" | "d" | "e";

/** One atomic operation on some keys. */
export interface Call {
  readonly operation: Operation;
  readonly units: readonly Unit[];
}

const REPLIES_PER_WINDOW: Readonly<Record<Operation, number>> = { a: 4, p: 4, s: 1, t: 5, c: 3, d: 0, e: 1 };

/** How many values the script answers to a call. */
export function repliesTo({ operation, units }: Call): number {
  let replies = 0;
  for (const { spec } of units)
    replies += (operation === "s" ? 1 : spec.windows) * REPLIES_PER_WINDOW[operation];
  return replies;
}

/** The charges of one call as the script takes them, with `x` and `y` for each. */
export function unitsOf(
  prefix: string,
  charges: readonly Charge[],
  x: (c: number) => number,
  y: (c: number) => number,
): Unit[] {
  return planOf(charges).map(({ spec, members }) => {
    const charge = charges[members[0]];
    return {
      spec,
      key: redisKey(prefix, charge, spec.suffix),
      heldKey: spec.heldSuffix && redisKey(prefix, charge, spec.heldSuffix),
      x: x(members[0]),
      y: y(members[0]),
      id: charge.id ?? "",
      members,
    };
  });
}

/**
 * `prefix{partition}key/limiter/rule/...`, the key left out where it is the partition. What would end
 * a part early is escaped, so that no two keys coincide and none reaches out of its hash tag.
 */
function redisKey(prefix: string, { partition, key }: Charge, suffix: string): string {
  return `${prefix}{${escapeKey(partition)}}${key === partition ? "" : escapeKey(key)}/${suffix}`;
}

const UNSAFE = /[%{}/]|\p{Surrogate}/u;

function escapeKey(text: string): string {
  if (!UNSAFE.test(text)) return text;
  return text.replace(
    /[%{}/]|\p{Surrogate}/gu,
    (unit) => `%${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Calls on the same rules, one after another; what they ask is told once where it is the same for all. */
interface Run {
  readonly calls: Call[];
  isSame: boolean;
}

/** Keys and arguments of the script for these calls. */
export function encode(now: string, calls: readonly Call[]): { keys: string[]; args: string[] } {
  const keys: string[] = [];
  const args: string[] = [];
  const specs = new Map<Spec, number>();
  const runs: Run[] = [];
  for (const call of calls) {
    for (const { key, heldKey } of call.units) {
      keys.push(key);
      if (heldKey !== undefined) keys.push(heldKey);
    }
    if (!joins(runs.at(-1), call)) runs.push({ calls: [call], isSame: true });
  }
  for (const { calls, isSame } of runs) {
    const [{ operation, units }] = calls;
    args.push(operation, String(calls.length), String(units.length), isSame ? "1" : String(calls.length));
    for (const { spec } of units) {
      if (!specs.has(spec)) specs.set(spec, specs.size + 1);
      args.push(String(specs.get(spec)));
    }
    for (const call of isSame ? calls.slice(0, 1) : calls) {
      for (const { x, y, id } of call.units) args.push(String(x), String(y), id);
    }
  }
  const rules = [...specs.keys()].flatMap((spec) => spec.args);
  return { keys, args: [now, String(specs.size), ...rules, ...args] };
}

/** Adds the call to the run, where it belongs there: what is the same for several stays a run of its own. */
function joins(run: Run | undefined, call: Call): boolean {
  if (run === undefined) return false;
  const [first] = run.calls;
  if (first.operation !== call.operation || !isOnSameRules(first, call)) return false;
  const isSame = run.isSame && asksTheSame(first, call);
  if (run.isSame && !isSame && run.calls.length > 1) return false;
  run.isSame = isSame;
  run.calls.push(call);
  return true;
}

function isOnSameRules(a: Call, b: Call): boolean {
  return a.units.length === b.units.length && a.units.every(({ spec }, u) => spec === b.units[u].spec);
}

function asksTheSame(a: Call, b: Call): boolean {
  return a.units.every((unit, u) => {
    const other = b.units[u];
    return unit.x === other.x && unit.y === other.y && unit.id === other.id;
  });
}
