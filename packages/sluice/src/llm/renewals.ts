/** What can be renewed. */
interface Renewable {
  renew(): Promise<unknown>;
}

/**
 * Renews what open reservations hold, while this process lives: one timer for all of them, which lets the process
 * end. A reservation that was dropped without an end, so that nobody can settle it any more, is not renewed.
 */
export class Renewals {
  readonly #everyMs: number;
  /** Since when each is held, or was renewed. */
  readonly #open = new Map<WeakRef<Renewable>, number>();
  #timer: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;

  constructor(everyMs: number) {
    this.#everyMs = Math.max(1, Math.min(everyMs, LONGEST_TIMER));
  }

  /** Renews it from now on, until what is returned is called. */
  keep(reservation: Renewable): () => void {
    if (this.#isClosed) return () => {};
    const ref = new WeakRef(reservation);
    this.#open.set(ref, performance.now());
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#renewDue(), this.#everyMs);
      (this.#timer as { unref?(): void }).unref?.();
    }
    return () => {
      this.#open.delete(ref);
      if (this.#open.size === 0) this.#stop();
    };
  }

  /** What is open keeps its lease, and no longer. */
  close(): void {
    this.#isClosed = true;
    this.#open.clear();
    this.#stop();
  }

  /** What was held for less than one round waits for the next, so that short calls cost nothing. */
  #renewDue(): void {
    const now = performance.now();
    for (const [ref, since] of this.#open) {
      const reservation = ref.deref();
      if (reservation === undefined) this.#open.delete(ref);
      else if (now - since >= this.#everyMs) {
        this.#open.set(ref, now);
        // A store that is out is asked again with the next round, before the lease has ended.
        reservation.renew().catch(() => {});
      }
    }
    if (this.#open.size === 0) this.#stop();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** Timers cannot be set further ahead. */
const LONGEST_TIMER = 2 ** 31 - 1;
