/** Fewer calls than this in one lease's life, and a key is cold. */
const HOT_CALLS = 4;

/** How much this process asks of one key in a lease's life, by the present such time and the one before. */
export class Demand {
  #slot = 0;
  #calls = 0;
  #units = 0;
  #callsBefore = 0;
  #unitsBefore = 0;

  add(cost: number, now: number, leaseMs: number): void {
    const slot = Math.floor(now / leaseMs);
    if (slot !== this.#slot) {
      const isNext = slot === this.#slot + 1;
      this.#callsBefore = isNext ? this.#calls : 0;
      this.#unitsBefore = isNext ? this.#units : 0;
      this.#calls = this.#units = 0;
      this.#slot = slot;
    }
    this.#calls++;
    this.#units += cost;
  }

  get isHot(): boolean {
    return this.#calls >= HOT_CALLS || this.#callsBefore >= HOT_CALLS;
  }

  get units(): number {
    return Math.max(this.#units, this.#unitsBefore);
  }
}
