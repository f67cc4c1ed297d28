import { randomUUID } from "node:crypto";
import type { Reservation } from "sluice";

/** What a reservation took under the rules of one limiter, trials apart. */
interface Held {
  readonly parts: readonly Reservation[];
  readonly expiresAt: number;
}

/**
 * Reservations by id, of this process. One that is neither settled nor cancelled keeps its full cost
 * until that leaves the window; from then on settling could change nothing, and the id is forgotten.
 */
export class OpenReservations {
  readonly #held = new Map<string, Held>();
  readonly #most: number;
  readonly #now: () => number;
  #sweptAt = 0;

  constructor(most: number, now: () => number = Date.now) {
    this.#most = most;
    this.#now = now;
  }

  get size(): number {
    return this.#held.size;
  }

  /** Whether another one can be held; expired ones make room. */
  hasRoom(): boolean {
    if (this.#held.size < this.#most) return true;
    // Sweeping looks at all of them, so it is done once a second at most.
    if (this.#now() - this.#sweptAt >= 1000) this.#sweep();
    return this.#held.size < this.#most;
  }

  hold(parts: readonly Reservation[], lifeMs: number): string {
    this.#dropOldest();
    const id = randomUUID();
    this.#held.set(id, { parts, expiresAt: this.#now() + lifeMs });
    return id;
  }

  /** Settles and forgets; false when there is no such reservation (any more). */
  async settle(id: string, actual: number): Promise<boolean> {
    const held = this.#held.get(id);
    if (held === undefined || held.expiresAt <= this.#now()) {
      this.#held.delete(id);
      return false;
    }
    await Promise.all(held.parts.map((part) => part.settle(actual)));
    this.#held.delete(id);
    return true;
  }

  /** Each new one pays for looking at the two oldest. */
  #dropOldest(): void {
    let looks = 2;
    for (const [id, { expiresAt }] of this.#held) {
      if (looks-- === 0 || expiresAt > this.#now()) return;
      this.#held.delete(id);
    }
  }

  #sweep(): void {
    const now = this.#now();
    this.#sweptAt = now;
    for (const [id, { expiresAt }] of this.#held) if (expiresAt <= now) this.#held.delete(id);
  }
}
