/** What one holder has of a key, and until when. */
interface Lease {
  readonly id: string;
  /** Since when, whatever was renewed. */
  readonly at: number;
  /** When it is free, whatever the holder does. */
  readonly endsAt: number;
  readonly cost: number;
}

/** The leases of one key, each of another holder. A call takes O(1), or O(leases) where it looks for one by its id. */
export class Holders {
  /** In the order in which they end. */
  readonly #leases: Lease[] = [];
  #cost = 0;

  get isEmpty(): boolean {
    return this.#leases.length === 0;
  }

  /** When the last one ends; 0 where there is none. */
  get endsAt(): number {
    return this.#leases.at(-1)?.endsAt ?? 0;
  }

  /** What is held by all together. */
  cost(now: number): number {
    let cost = this.#cost;
    for (const lease of this.#leases) {
      if (lease.endsAt > now) break;
      cost -= lease.cost;
    }
    return cost;
  }

  /** Those that have not ended, in the order in which they will. */
  live(now: number): readonly Lease[] {
    return this.#leases.filter(({ endsAt }) => endsAt > now);
  }

  add(lease: Lease): void {
    // Nearly always at the end: only what came before the clock stepped back ends after it.
    let place = this.#leases.length;
    while (place > 0 && this.#leases[place - 1].endsAt > lease.endsAt) place--;
    this.#leases.splice(place, 0, lease);
    this.#cost += lease.cost;
  }

  /** Takes a lease out, and those that have ended; undefined when it is none of the others. */
  take(id: string, now: number): Lease | undefined {
    this.dropEnded(now);
    const place = this.#leases.findLastIndex((lease) => lease.id === id);
    if (place < 0) return undefined;
    const [lease] = this.#leases.splice(place, 1);
    this.#cost -= lease.cost;
    return lease;
  }

  dropEnded(now: number): void {
    let ended = 0;
    for (; this.#leases[ended]?.endsAt <= now; ended++) this.#cost -= this.#leases[ended].cost;
    if (ended > 0) this.#leases.splice(0, ended);
  }
}
