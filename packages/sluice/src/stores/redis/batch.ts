import { SluiceError } from "../../errors.js";
import type { Charge, Settlement } from "../../store.js";
import { Call, type Operation, type Question } from "./call.js";
import type { Connection } from "./client.js";
import { encode } from "./encode.js";
import { Reply } from "./reply.js";

/** A batch this large takes Redis less than a millisecond. */
const KEYS_PER_BATCH = 250;
const KEY_CHARACTERS_PER_BATCH = 200_000;
/** While this many batches are under way, further calls gather for the next. */
const BATCHES_UNDER_WAY = 2;

type Waiting = Question & Pick<Call<unknown>, "answer" | "fail">;

/**
 * Group commit: the calls of one tick go out together, a lone one at once, and what comes in while
 * batches are under way makes the next. In order, and each call with its own answer.
 */
export class Batcher {
  readonly #connection: Connection;
  readonly #prefix: string;
  readonly #now: () => string;
  readonly #onIdle: () => void;
  #waiting: Waiting[] = [];
  #underWay = 0;
  #scheduled = false;

  /** `now` is the time to decide by, empty for the server's own. */
  constructor(connection: Connection, prefix: string, now: () => string, onIdle: () => void) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#now = now;
    this.#onIdle = onIdle;
  }

  ask<T>(
    operation: Operation,
    charges: readonly (Charge | Settlement)[],
    read: (reply: Reply, question: Question) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(new Call(operation, charges, read, resolve, reject));
      if (this.#scheduled || this.#underWay >= BATCHES_UNDER_WAY) return;
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#send();
      });
    });
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#underWay < BATCHES_UNDER_WAY) void this.#run(this.#takeBatch());
  }

  #takeBatch(): readonly Waiting[] {
    let keys = 0;
    let characters = 0;
    let size = 0;
    for (const { parts, charges } of this.#waiting) {
      keys += parts.length;
      for (const { members } of parts) {
        const { partition, key } = charges[members[0]];
        characters += partition.length + key.length;
      }
      if (size > 0 && (keys > KEYS_PER_BATCH || characters > KEY_CHARACTERS_PER_BATCH)) break;
      size++;
    }
    return this.#waiting.splice(0, size);
  }

  async #run(batch: readonly Waiting[]): Promise<void> {
    this.#underWay++;
    try {
      const { keys, args, ordered } = encode(this.#prefix, this.#now(), batch);
      // What a settlement gives back must not be given twice.
      const repeatable = batch.every(({ operation }) => operation !== "s");
      const reply = new Reply((await this.#connection.run(keys, args, repeatable)) as readonly unknown[]);
      for (const call of ordered) call.answer(reply);
    } catch (error) {
      for (const call of batch) call.fail(failure(error));
    } finally {
      this.#underWay--;
      this.#send();
      if (this.#underWay === 0) this.#onIdle();
    }
  }
}

function failure(error: unknown): SluiceError {
  const reason = error instanceof Error ? error.message : String(error);
  return new SluiceError("STORE_FAILED", `Redis did not decide: ${reason}`, { cause: error });
}
