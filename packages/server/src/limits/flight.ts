/** Bounds how many decisions wait for the store, so that a slow one does not gather them without end. */
export class Flight {
  #aloft = 0;
  readonly #most: number;

  constructor(most: number) {
    this.#most = most;
  }

  get aloft(): number {
    return this.#aloft;
  }

  hasRoom(more = 1): boolean {
    return this.#aloft + more <= this.#most;
  }

  /** Counts the work as in flight until it ends. */
  async track<T>(work: Promise<T>, weight = 1): Promise<T> {
    this.#aloft += weight;
    try {
      return await work;
    } finally {
      this.#aloft -= weight;
    }
  }
}
