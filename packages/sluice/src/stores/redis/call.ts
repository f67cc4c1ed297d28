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

/** A run of alike calls: where it begins among the arguments, and the first of its calls. */
interface Run {
  readonly first: Question;
  readonly start: number;
  calls: number;
  /** Whether the arguments list what is asked for each of the calls. */
  each: boolean;
}

/** Keys and arguments of the script for these calls; runs of alike calls are described once. */
export function encode(
  prefix: string,
  now: string,
  calls: readonly Question[],
): { keys: string[]; args: string[] } {
  const keys: string[] = [];
  const args: string[] = [];
  const specs = new Map<Spec, number>();
  let run: Run | undefined;
  for (const call of calls) {
    const { charges, parts } = call;
    for (const { spec, members } of parts) {
      keys.push(redisKey(prefix, charges[members[0]], spec.suffix));
      if (spec.heldSuffix !== undefined) keys.push(redisKey(prefix, charges[members[0]], spec.heldSuffix));
    }
    if (run !== undefined && joins(run, call, args)) {
      args[run.start + 1] = String(++run.calls);
      continue;
    }
    run = { first: call, start: args.length, calls: 1, each: false };
    for (const { spec } of parts) if (!specs.has(spec)) specs.set(spec, specs.size + 1);
    if (isPlain(call)) {
      args.push(call.operation.toUpperCase(), "1", String(specs.get(parts[0].spec)));
    } else {
      args.push(call.operation, "1", String(parts.length), "");
      for (const { spec } of parts) args.push(String(specs.get(spec)));
    }
    pushAsked(args, call);
  }
  const rules = [...specs.keys()].flatMap((spec) => spec.args);
  return { keys, args: [now, String(specs.size), ...rules, ...args] };
}

/** Whether a call goes with a run: one on the same rules. Where calls ask for other things, these are then listed. */
function joins(run: Run, call: Question, args: string[]): boolean {
  const { first, start } = run;
  if (call.operation !== first.operation || call.parts !== first.parts) return false;
  const plain = isPlain(call);
  if (plain !== isPlain(first)) return false;
  if (!run.each) {
    if (asksTheSame(call, first)) return true;
    if (run.calls > 1) return false;
    run.each = true;
    args[start + 3] = "*";
    if (plain) pushAsked(args, first);
  }
  pushAsked(args, call);
  return true;
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
