import type { Charge, Settlement } from "../../store.js";
import { type Part, planOf } from "./plan.js";
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
