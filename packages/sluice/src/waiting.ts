import type { RuleDecision } from "./decision.js";
import { SluiceError, show, wholeNumber } from "./errors.js";
import { type Charge, type Store, settlementsOf } from "./store.js";

/** How `acquire` waits: for which cost, and when it gives up. */
export interface AcquireOptions {
  readonly cost?: number;
  /** Gives up when aborted, rejecting with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Gives up after this long, rejecting with `TIMEOUT`. */
  readonly timeoutMs?: number;
}

/** Timers cannot be set further ahead; a longer wait asks again in between. */
const LONGEST_TIMER = 2 ** 31 - 1;

const DEGRADED_NAP_MS = 1000;

interface Waiter {
  readonly charges: readonly Charge[];
  readonly admit: (rules: readonly RuleDecision[]) => void;
  readonly refuse: (reason: unknown) => void;
  /** Whether it takes one of the places that `maxWaiting` allows. */
  seated: boolean;
}

/** Those who wait for one key, in the order they came. */
class Line {
  readonly waiters = new Set<Waiter>();
  #woken = false;
  #endSleep: () => void = () => {};

  get head(): Waiter | undefined {
    const [head] = this.waiters;
    return head;
  }

  /** Sleeps, unless something called `wake` since the last sleep began. */
  async sleep(ms: number): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.min(ms, LONGEST_TIMER));
        this.#endSleep = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#woken = false;
  }

  wake(): void {
    this.#woken = true;
    this.#endSleep();
  }
}

/**
 * The waiting of `acquire`: one line per key, first come first served, so that a heavy cost at the
 * head is not overtaken by light ones. Only the head asks the store; denied, it sleeps until the
 * time its denial named, and is woken early when something is given back.
 */
export class WaitingLines {
  readonly #store: Store;
  readonly #seats: number;
  readonly #lines = new Map<string, Line>();
  #seated = 0;

  constructor(store: Store, maxWaiting: number) {
    this.#store = store;
    this.#seats = maxWaiting;
  }

  wait(key: string, charges: readonly Charge[], options: AcquireOptions): Promise<readonly RuleDecision[]> {
    const { signal, timeoutMs } = options;
    if (timeoutMs !== undefined) wholeNumber("INVALID_OPTION", "timeoutMs", timeoutMs, 1, LONGEST_TIMER);
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new SluiceError("INVALID_OPTION", `signal must be an AbortSignal; got ${show(signal)}.`);
    }
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const line = this.#lines.get(key) ?? new Line();
      const abort = () => waiter.refuse(signal?.reason);
      const timer = timeoutMs && setTimeout(() => waiter.refuse(timedOut(timeoutMs)), timeoutMs);
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        if (line.waiters.delete(waiter) && waiter.seated) this.#seated--;
      };
      const waiter: Waiter = {
        charges,
        seated: false,
        admit: (rules) => {
          leave();
          resolve(rules);
        },
        refuse: (reason) => {
          if (line.head === waiter) line.wake();
          leave();
          reject(reason);
        },
      };
      signal?.addEventListener("abort", abort, { once: true });
      line.waiters.add(waiter);
      if (line.waiters.size > 1) this.#seat(waiter, line);
      if (this.#lines.has(key)) return;
      this.#lines.set(key, line);
      void this.#serve(key, line);
    });
  }

  /** Lets the head of this line ask again at once. */
  wake(key: string): void {
    this.#lines.get(key)?.wake();
  }

  close(): void {
    for (const line of this.#lines.values()) {
      for (const waiter of line.waiters) {
        waiter.refuse(new SluiceError("CLOSED", "The limiter was closed while this call waited."));
      }
    }
  }

  async #serve(key: string, line: Line): Promise<void> {
    for (let { head } = line; head !== undefined; head = line.head) {
      try {
        const rules = await this.#store.decide(head.charges, true);
        const waitMs = Math.max(...rules.map((rule) => rule.retryAfterMs));
        const stillThere = line.waiters.has(head);
        if (waitMs === 0 && stillThere) head.admit(rules);
        else if (waitMs === 0) await this.#giveBack(head.charges, rules);
        else if (stillThere && this.#seat(head, line)) await line.sleep(napOf(rules, waitMs));
      } catch (error) {
        head.refuse(error);
      }
    }
    this.#lines.delete(key);
  }

  /** Gives the waiter a seat, but never the last one while the head of its line has none yet. */
  #seat(waiter: Waiter, line: Line): boolean {
    if (waiter.seated) return true;
    const kept = line.head === waiter || line.head?.seated ? 0 : 1;
    if (this.#seated + kept >= this.#seats) {
      waiter.refuse(
        new SluiceError(
          "QUEUE_FULL",
          `${this.#seats} calls are waiting already; raise maxWaiting or shed load.`,
        ),
      );
      return false;
    }
    this.#seated++;
    waiter.seated = true;
    return true;
  }

  /** The head left while the store was answering: what it took is not its own any more. */
  async #giveBack(charges: readonly Charge[], rules: readonly RuleDecision[]): Promise<void> {
    await this.#store.settle(settlementsOf(charges, rules, ({ cost }) => -cost));
  }
}

/** An outage may be over any time, so what a policy denied is asked again before long. */
function napOf(rules: readonly RuleDecision[], waitMs: number): number {
  return rules.some((rule) => rule.degraded !== undefined) ? Math.min(waitMs, DEGRADED_NAP_MS) : waitMs;
}

function timedOut(timeoutMs: number): SluiceError {
  return new SluiceError("TIMEOUT", `Not admitted within ${timeoutMs} ms; wait longer or lower the demand.`);
}
