import type { Charge, Settlement } from "../../store.js";
import { type Part, planOf, type Spec } from "./plan.js";
import type { Reply } from "./reply.js";

/** The operations of the script, by the letters that driver.lua explains. */
export type Operation = "a" | "p" | "s" | "t" | "c" | "d" | "e";

/** One atomic operation on some keys. */
export interface Question {
  readonly operation: Operation;
  readonly charges: readonly (Charge | Settlement)[];
  /** The charges as the script takes them, one Redis key each. */
  readonly parts: readonly Part[];
}

/** A question and who waits for its answer. */
export class Call<T> implements Question {
  readonly operation: Operation;
  readonly charges: readonly (Charge | Settlement)[];
  readonly parts: readonly Part[];
  readonly #read: (reply: Reply, question: Question) => T;
  readonly #resolve: (answer: T) => void;
  readonly fail: (error: unknown) => void;

  constructor(
    operation: Operation,
    charges: readonly (Charge | Settlement)[],
    read: (reply: Reply, question: Question) => T,
    resolve: (answer: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.operation = operation;
    this.charges = charges;
    this.parts = planOf(charges);
    this.#read = read;
    this.#resolve = resolve;
    this.fail = reject;
  }

  answer(reply: Reply): void {
    this.#resolve(this.#read(reply, this));
  }
}

/** Calls on the same rules, told together: their keys, and what each asks for, or all of them alike. */
interface Run {
  readonly calls: Question[];
  readonly keys: string[];
  asked: string[];
  each: boolean;
}

/**
 * Keys and arguments of the script for these calls, and the calls in the order of its answers. Alike calls are told
 * together, wherever they stand; only those on the same key keep their order.
 */
export function encode<T extends Question>(
  prefix: string,
  now: string,
  calls: readonly T[],
): { keys: string[]; args: string[]; ordered: T[] } {
  const runs: (Run & { calls: T[] })[] = [];
  /** The last run that a key is in. Not needed while there is one. */
  let lastRuns: Map<string, number> | undefined;
  for (const call of calls) {
    const keys = redisKeys(prefix, call);
    let r = runs.length - 1;
    if (r >= 0 && !isAlike(runs[r].calls[0], call)) {
      lastRuns ??= new Map(runs[0].keys.map((key) => [key, 0]));
      let earliest = 0;
      for (const key of keys) earliest = Math.max(earliest, lastRuns.get(key) ?? 0);
      do r--;
      while (r >= earliest && !isAlike(runs[r].calls[0], call));
      if (r < earliest) r = -1;
    }
    if (r < 0) {
      r = runs.length;
      runs.push({ calls: [], keys: [], asked: [], each: false });
    }
    join(runs[r], call, keys);
    if (lastRuns !== undefined)
      for (const key of keys) lastRuns.set(key, Math.max(r, lastRuns.get(key) ?? 0));
  }
  const specs = new Map<Spec, number>();
  for (const { calls: alike } of runs) {
    for (const { spec } of alike[0].parts) if (!specs.has(spec)) specs.set(spec, specs.size + 1);
  }
  const args = [now, String(specs.size)];
  for (const { args: numbers } of specs.keys()) args.push(...numbers);
  for (const { calls: alike, asked, each } of runs) {
    const [first] = alike;
    const { operation, parts } = first;
    const plain = isPlain(first);
    args.push(plain ? operation.toUpperCase() : operation, String(alike.length), each ? "*" : "");
    if (!plain) args.push(String(parts.length));
    for (const { spec } of parts) args.push(String(specs.get(spec)));
    for (const text of asked) args.push(text);
  }
  if (runs.length === 1) return { keys: runs[0].keys, args, ordered: runs[0].calls };
  return { keys: runs.flatMap(({ keys }) => keys), args, ordered: runs.flatMap(({ calls: alike }) => alike) };
}

function redisKeys(prefix: string, { charges, parts }: Question): string[] {
  const keys: string[] = [];
  for (const { spec, members } of parts) {
    const charge = charges[members[0]];
    keys.push(redisKey(prefix, charge, spec.suffix));
    if (spec.heldSuffix !== undefined) keys.push(redisKey(prefix, charge, spec.heldSuffix));
  }
  return keys;
}

function isAlike(a: Question, b: Question): boolean {
  return a.operation === b.operation && a.parts === b.parts && isPlain(a) === isPlain(b);
}

/** Where the calls of a run ask for other things, these are told one by one. */
function join(run: Run, call: Question, keys: readonly string[]): void {
  const { calls } = run;
  if (calls.length === 0) {
    pushAsked(run.asked, call);
  } else if (!run.each && !asksTheSame(call, calls[0])) {
    run.each = true;
    for (let n = 1; n < calls.length; n++) pushAsked(run.asked, calls[0]);
  }
  if (run.each) pushAsked(run.asked, call);
  calls.push(call);
  for (const key of keys) run.keys.push(key);
}

function asksTheSame({ operation, charges, parts }: Question, other: Question): boolean {
  return parts.every(({ members: [m] }) => {
    const [a, b] = [charges[m], other.charges[m]];
    return xOf(operation, a) === xOf(operation, b) && yOf(a) === yOf(b) && a.id === b.id;
  });
}

/** What a call asks for, charge by charge; of a plain one the cost is all. */
function pushAsked(args: string[], call: Question): void {
  const { operation, charges, parts } = call;
  if (isPlain(call)) {
    args.push(String(charges[0].cost));
    return;
  }
  for (const { members } of parts) {
    const charge = charges[members[0]];
    args.push(String(xOf(operation, charge)), String(yOf(charge)), charge.id ?? "");
  }
}

/** Whether a call is a decision on one Redis key, and there is nothing to tell besides the cost. */
function isPlain({ operation, parts, charges: [{ id, look }] }: Question): boolean {
  if ((operation !== "a" && operation !== "p") || parts.length > 1) return false;
  return id === undefined && look !== true && parts[0].spec.heldSuffix === undefined;
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
