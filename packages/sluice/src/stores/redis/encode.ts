import type { Charge, Settlement } from "../../store.js";
import type { Operation, Question } from "./call.js";
import type { Part, Spec } from "./plan.js";

/** Alike calls, told together: their keys, and what each asks for, or the first one where all ask the same. */
interface Run<T> {
  readonly letter: string;
  readonly parts: readonly Part[];
  readonly calls: T[];
  readonly keys: string[];
  readonly asked: string[];
  each: boolean;
}

/**
 * Keys and arguments of the script for these calls, and the calls in the order of its answers. Alike calls are told
 * together, wherever they stand; those that have a key in common keep their order.
 */
export function encode<T extends Question>(
  prefix: string,
  now: string,
  calls: readonly T[],
): { keys: string[]; args: string[]; ordered: T[] } {
  const runs = runsOf(prefix, calls);
  const specs = new Map<Spec, number>();
  for (const { parts } of runs) {
    for (const { spec } of parts) if (!specs.has(spec)) specs.set(spec, specs.size + 1);
  }
  const args = [now, String(specs.size)];
  for (const spec of specs.keys()) args.push(...spec.args);
  for (const run of runs) {
    args.push(run.letter, String(run.calls.length), run.each ? "*" : "");
    if (!isPlain(run.letter)) args.push(String(run.parts.length));
    for (const { spec } of run.parts) args.push(String(specs.get(spec)));
    for (const text of run.asked) args.push(text);
  }
  if (runs.length === 1) return { keys: runs[0].keys, args, ordered: runs[0].calls };
  return { keys: runs.flatMap((run) => run.keys), args, ordered: runs.flatMap((run) => run.calls) };
}

function runsOf<T extends Question>(prefix: string, calls: readonly T[]): Run<T>[] {
  const runs: Run<T>[] = [];
  /** The last run that a key is in. Not needed while there is only one. */
  let lastRuns: Map<string, number> | undefined;
  for (const call of calls) {
    const letter = letterOf(call);
    const keys = keysOf(prefix, call);
    let r = runs.length - 1;
    if (r < 0 || !isLike(runs[r], letter, call)) {
      if (r >= 0) lastRuns ??= new Map();
      let earliest = 0;
      for (const key of keys) earliest = Math.max(earliest, lastRuns?.get(key) ?? 0);
      do r--;
      while (r >= earliest && !isLike(runs[r], letter, call));
      if (r < earliest) {
        r = runs.length;
        runs.push({ letter, parts: call.parts, calls: [], keys: [], asked: [], each: false });
      }
    }
    join(runs[r], call, keys);
    if (lastRuns !== undefined) {
      for (const key of keys) lastRuns.set(key, Math.max(r, lastRuns.get(key) ?? 0));
    }
  }
  return runs;
}

/** The letter that the script takes a call by: see driver.lua. */
function letterOf({ operation, charges, parts }: Question): string {
  if (operation !== "a" && operation !== "p") return operation;
  for (const { look } of charges) if (look === true) return operation === "a" ? "l" : "p";
  const plain = parts.length === 1 && charges[0].id === undefined && parts[0].spec.heldSuffix === undefined;
  return plain ? operation.toUpperCase() : operation;
}

/** Whether a call is a decision on one Redis key, and there is nothing to tell besides the cost. */
function isPlain(letter: string): boolean {
  return letter === "A" || letter === "P";
}

function isLike(run: Run<Question>, letter: string, call: Question): boolean {
  return run.letter === letter && run.parts === call.parts;
}

function keysOf(prefix: string, { charges, parts }: Question): string[] {
  const keys: string[] = [];
  for (const { spec, members } of parts) {
    const charge = charges[members[0]];
    keys.push(redisKey(prefix, charge, spec.suffix));
    if (spec.heldSuffix !== undefined) keys.push(redisKey(prefix, charge, spec.heldSuffix));
  }
  return keys;
}

/** Where the calls of a run ask for other things, these are told one by one. */
function join<T extends Question>(run: Run<T>, call: T, keys: readonly string[]): void {
  const { calls, letter } = run;
  if (calls.length > 0 && !run.each && !asksTheSame(call, calls[0])) {
    run.each = true;
    for (let n = 1; n < calls.length; n++) pushAsked(run.asked, letter, calls[0]);
  }
  if (calls.length === 0 || run.each) pushAsked(run.asked, letter, call);
  calls.push(call);
  for (const key of keys) run.keys.push(key);
}

function asksTheSame({ operation, charges, parts }: Question, other: Question): boolean {
  for (const { members } of parts) {
    const [a, b] = [charges[members[0]], other.charges[members[0]]];
    if (xOf(operation, a) !== xOf(operation, b) || yOf(a) !== yOf(b) || a.id !== b.id) return false;
  }
  return true;
}

/** What a call asks for, charge by charge. */
function pushAsked(args: string[], letter: string, { operation, charges, parts }: Question): void {
  for (const { members } of parts) {
    const charge = charges[members[0]];
    args.push(String(xOf(operation, charge)));
    if (letter !== "a" && letter !== "p" && !isPlain(letter)) args.push(String(yOf(charge)));
    if (!isPlain(letter)) args.push(charge.id ?? "");
  }
}

/** A cost; of a settlement its difference or, where the rule tells held and counted apart, what it really was. */
function xOf(operation: Operation, charge: Charge | Settlement): number {
  if (operation !== "s" || !("at" in charge)) return charge.cost;
  const { rule, id, cost, actual } = charge;
  if (rule.lease !== undefined && id !== undefined) return actual ?? -1;
  return actual === undefined ? 0 : actual - cost;
}

/** The time of a settlement or the end of a period; of a charge, whether it only looks. */
function yOf(charge: Charge | Settlement): number {
  if ("at" in charge) return charge.at;
  return charge.look === true ? 1 : 0;
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
