import { SluiceError } from "../errors.js";
import type { Store } from "../store.js";

/** What a breaker tells of, to whoever listens. */
export interface OutageEvents {
  /** The store stopped answering in time; `error` is the last reason why. */
  readonly onOutage?: (outage: { readonly error: SluiceError }) => unknown;
  /** The store answered again, after so long. */
  readonly onRecover?: (recovery: { readonly outageMs: number }) => unknown;
}

/** As many failures in a row, with no answer in time between them, are an outage. */
const FAILURES = 5;
/** How long apart probes are on average: far enough for any number of processes, near enough for a second. */
const PROBE_MS = 200;
/** As many calls may be unanswered at a time, abandoned ones included. */
const MOST_UNANSWERED = 10_000;
/** With that many stuck, one more asks this rarely whether they are lost. */
const STUCK_PROBE_MS = 30_000;
/** After an outage as many may be under way at once: one at first, one more with each answer. */
const FULL_PACE = 256;

/**
 * Stops asking a store that does not answer, and lets one call at a time find out when it does again.
 * Calls then come back as fast as they are answered, since each answer lets one more be under way.
 */
export class Breaker {
  readonly #now: () => number;
  readonly #listeners = new Set<OutageEvents>();
  #failures = 0;
  #unanswered = 0;
  /** How many calls may be under way: none but probes while the store is out. */
  #pace = Infinity;
  #outSince = 0;
  #probeAt = 0;
  #lastError = notAnswering(undefined);
  /** Calls of earlier generations are not counted any more. */
  #generation = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  listen(events: OutageEvents): void {
    this.#listeners.add(events);
  }

  unlisten(events: OutageEvents): void {
    this.#listeners.delete(events);
  }

  get lastError(): SluiceError {
    return this.#lastError;
  }

  /** Whether the store may be asked now; then each call is told of by `answered` or `failed`, and by `left`. */
  enter(): number | undefined {
    const isStuck = this.#unanswered >= MOST_UNANSWERED;
    if (this.#pace > this.#unanswered && !isStuck) return this.#go();
    if (isStuck && this.#pace > 0) this.failed(new Error(`${MOST_UNANSWERED} calls are unanswered`));
    if (this.#pace > 0) return undefined;
    const now = this.#now();
    if (now < this.#probeAt) return undefined;
    this.#probeAt = now + (isStuck ? STUCK_PROBE_MS : PROBE_MS) * (0.5 + Math.random());
    return this.#go();
  }

  /** The call's promise is settled, in time or not. */
  left(generation: number): void {
    if (generation === this.#generation) this.#unanswered--;
  }

  /** The store answered in time. */
  answered(): void {
    this.#failures = 0;
    if (this.#pace === Infinity) return;
    if (this.#pace === 0) {
      // What is still unanswered now was lost with the outage.
      this.#generation++;
      this.#unanswered = 0;
      this.#tell("onRecover", { outageMs: Math.round(this.#now() - this.#outSince) });
    }
    this.#pace = this.#pace >= FULL_PACE ? Infinity : this.#pace + 1;
  }

  /** The store failed, or did not answer in time. */
  failed(cause: unknown): void {
    this.#lastError = notAnswering(cause);
    this.#failures++;
    if (this.#pace === 0) return;
    // After an outage one failure is enough.
    if (this.#failures < FAILURES && this.#pace === Infinity) return;
    this.#pace = 0;
    this.#outSince = this.#now();
    this.#probeAt = this.#outSince + PROBE_MS * Math.random();
    this.#tell("onOutage", { error: this.#lastError });
  }

  #go(): number {
    this.#unanswered++;
    return this.#generation;
  }

  /** A listener can never break a decision. */
  #tell<E extends keyof OutageEvents>(event: E, what: Parameters<NonNullable<OutageEvents[E]>>[0]): void {
    for (const listener of this.#listeners) callSafely(listener[event] as (what: unknown) => unknown, what);
  }
}

/** Calls what a user gave, whatever it throws or rejects with. */
export function callSafely<T>(call: ((what: T) => unknown) | undefined, what: T): void {
  try {
    const result = call?.(what);
    if (result instanceof Promise) result.catch(() => {});
  } catch {}
}

/** Breakers by store and deadline: those who judge a store alike share what they know of it. */
const breakers = new WeakMap<Store, Map<number, Breaker>>();

export function breakerOf(store: Store, deadlineMs: number, now: () => number): Breaker {
  const known = breakers.get(store) ?? new Map<number, Breaker>();
  breakers.set(store, known);
  const breaker = known.get(deadlineMs) ?? new Breaker(now);
  known.set(deadlineMs, breaker);
  return breaker;
}

function notAnswering(cause: unknown): SluiceError {
  if (cause instanceof SluiceError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause ?? "unknown");
  return new SluiceError("STORE_FAILED", `The store is out: ${reason}`, { cause });
}
