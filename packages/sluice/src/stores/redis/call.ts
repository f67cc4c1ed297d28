import type { Charge } from "../../store.js";
import { planOf, type Spec } from "./plan.js";

/** One Redis key and what is done with it; `members` are the charges it answers, in order. */
export interface Unit {
  readonly spec: Spec;
  readonly key: string;
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

const REPLIES_PER_WINDOW: Readonly<Record<Operation, number>> = { a: 4, p: 4, s: 0, t: 5, c: 3, d: 0, e: 1 };

/** How many values the script answers to a call. */
export function repliesTo({ operation, units }: Call): number {
  let replies = 0;
  for (const unit of units) replies += unit.spec.windows * REPLIES_PER_WINDOW[operation];
  return replies;
}

/** The charges of one call as the script takes them, with `y` for each. */
export function unitsOf(prefix: string, charges: readonly Charge[], y: (c: number) => number): Unit[] {
  return planOf(charges).map(({ spec, members }) => {
    const charge = charges[members[0]];
    return {
      spec,
      key: redisKey(prefix, charge, spec.suffix),
      x: charge.cost,
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

/** Keys and arguments of the script for these calls; runs of alike calls are described once. */
export function encode(now: string, calls: readonly Call[]): { keys: string[]; args: string[] } {
  const keys: string[] = [];
  const runs: string[] = [];
  const specs = new Map<Spec, number>();
  let counted = -1;
  for (let n = 0; n < calls.length; n++) {
    const call = calls[n];
    for (const unit of call.units) keys.push(unit.key);
    if (n > 0 && alike(call, calls[n - 1])) {
      runs[counted] = String(Number(runs[counted]) + 1);
      continue;
    }
    counted = runs.push(call.operation, "1", String(call.units.length)) - 2;
    for (const { spec, x, y, id } of call.units) {
      if (!specs.has(spec)) specs.set(spec, specs.size + 1);
      runs.push(String(specs.get(spec)), String(x), String(y), id);
    }
  }
  const rules = [...specs.keys()].flatMap((spec) => spec.args);
  return { keys, args: [now, String(specs.size), ...rules, ...runs] };
}

function alike(a: Call, b: Call): boolean {
  if (a.operation !== b.operation || a.units.length !== b.units.length) return false;
  return a.units.every((unit, u) => {
    const other = b.units[u];
    return unit.spec === other.spec && unit.x === other.x && unit.y === other.y && unit.id === other.id;
  });
}
