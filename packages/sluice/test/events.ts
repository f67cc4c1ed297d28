interface Event {
  readonly time: number;
  readonly run: () => void;
}

/** A heap of events by time; those of one time in the order they were added. */
export class Events {
  readonly #heap: (Event & { readonly order: number })[] = [];
  #order = 0;

  add(time: number, run: () => void): void {
    const heap = this.#heap;
    let n = heap.push({ time, run, order: this.#order++ }) - 1;
    while (n > 0 && this.#isBefore(n, (n - 1) >>> 1)) n = this.#swap(n, (n - 1) >>> 1);
  }

  next(): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let n = 0; ; ) {
      let least = n;
      for (const child of [2 * n + 1, 2 * n + 2]) {
        if (child < heap.length && this.#isBefore(child, least)) least = child;
      }
      if (least === n) return first;
      n = this.#swap(n, least);
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [x, y] = [this.#heap[a], this.#heap[b]];
    return x.time < y.time || (x.time === y.time && x.order < y.order);
  }

  #swap(a: number, b: number): number {
    const heap = this.#heap;
    [heap[a], heap[b]] = [heap[b], heap[a]];
    return b;
  }
}
