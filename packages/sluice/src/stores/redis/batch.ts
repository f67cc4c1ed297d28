import { type Call, encode, repliesTo } from "./call.js";
import type { Connection } from "./client.js";

/** A batch this large takes Redis about a millisecond. */
const UNITS_PER_BATCH = 250;
const KEY_CHARACTERS_PER_BATCH = 200_000;
/** While this many batches are under way, further calls gather for the next. */
const BATCHES_UNDER_WAY = 2;

/** What the script answered: `reply[0]` is the time, a call's own values begin at `start`. */
type Read<T> = (reply: readonly unknown[], start: number) => T;

interface Waiting {
  readonly call: Call;
  readonly answer: Read<void>;
  readonly fail: (error: unknown) => void;
}

/**
 * Group commit: the calls of one tick go out together, a lone one at once, and what comes in while
 * batches are under way makes the next. In order, and each call with its own answer.
 */
export class Batcher {
  readonly #connection: Connection;
  readonly #now: () => string;
  #waiting: Waiting[] = [];
  #underWay = 0;
  #scheduled = false;

  /** `now` is the time to decide by, empty for the server's own. */
  constructor(connection: Connection, now: () => string) {
    this.#connection = connection;
    this.#now = now;
  }

  get idle(): boolean {
    return this.#underWay === 0 && this.#waiting.length === 0;
  }

  submit<T>(call: Call, read: Read<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ call, answer: (reply, start) => resolve(read(reply, start)), fail: reject });
      if (this.#scheduled || this.#underWay >= BATCHES_UNDER_WAY) return;
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.#send();
      });
    });
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#underWay < BATCHES_UNDER_WAY) {
      void this.#run(this.#takeBatch());
    }
  }

  #takeBatch(): readonly Waiting[] {
    let units = 0;
    let characters = 0;
    let size = 0;
    for (const { call } of this.#waiting) {
      units += call.units.length;
      for (const unit of call.units) characters += unit.key.length;
      if (size > 0 && (units > UNITS_PER_BATCH || characters > KEY_CHARACTERS_PER_BATCH)) break;
      size++;
    }
    return this.#waiting.splice(0, size);
  }

  async #run(batch: readonly Waiting[]): Promise<void> {
    this.#underWay++;
    try {
      const { keys, args } = encode(
        this.#now(),
        batch.map((waiting) => waiting.call),
      );
      // What a settlement gives back must not be given twice.
      const repeatable = batch.every(({ call }) => call.operation !== "s");
      const reply = (await this.#connection.run(keys, args, repeatable)) as readonly unknown[];
      let start = 1;
      for (const { call, answer } of batch) {
        answer(reply, start);
        start += repliesTo(call);
      }
    } catch (error) {
      for (const { fail } of batch) fail(error);
    } finally {
      this.#underWay--;
      this.#send();
    }
  }
}
