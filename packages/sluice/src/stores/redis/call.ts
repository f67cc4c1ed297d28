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
  /** Whether the arguments list a cost for each of the calls. */
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
    for (const { spec, members } of parts) keys.push(redisKey(prefix, charges[members[0]], spec.suffix));
    if (run !== undefined && joins(run, call, args)) {
      args[run.start + 1] = String(++run.calls);
      continue;
    }
    run = { first: call, start: args.length, calls: 1, each: false };
    for (const { spec } of parts) if (!specs.has(spec)) specs.set(spec, specs.size + 1);
    if (isPlain(call)) {
      args.push(call.operation.toUpperCase(), "1", String(specs.get(parts[0].spec)), String(charges[0].cost));
      continue;
    }
    args.push(call.operation, "1", String(parts.length));
    for (const { spec, members } of parts) {
      const charge = charges[members[0]];
      args.push(String(specs.get(spec)), String(charge.cost), String(yOf(charge)), charge.id ?? "");
    }
  }
  const rules = [...specs.keys()].flatMap((spec) => spec.args);
  return { keys, args: [now, String(specs.size), ...rules, ...args] };
}

/** Whether a call goes with a run; plain calls may differ in their costs, which are then listed. */
function joins(run: Run, call: Question, args: string[]): boolean {
  const { first, start } = run;
  if (call.operation !== first.operation || call.parts !== first.parts) return false;
  const plain = isPlain(call);
  if (plain !== isPlain(first)) return false;
  if (!plain) return call.parts.every(({ members: [m] }) => alike(call.charges[m], first.charges[m]));
  const { cost } = call.charges[0];
  const firstCost = first.charges[0].cost;
  if (!run.each) {
    if (cost === firstCost) return true;
    if (run.calls > 1) return false;
    run.each = true;
    args[start + 3] = "*";
    args.push(String(firstCost));
  }
  args.push(String(cost));
  return true;
}

function alike(a: Charge | Settlement, b: Charge | Settlement): boolean {
  return a.cost === b.cost && yOf(a) === yOf(b) && a.id === b.id;
}

/** Whether a call is a decision on one Redis key, and there is nothing to tell besides the cost. */
function isPlain({ operation, parts, charges: [{ id, look }] }: Question): boolean {
  return (operation === "a" || operation === "p") && parts.length === 1 && id === undefined && look !== true;
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
