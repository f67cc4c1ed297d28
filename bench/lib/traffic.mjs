// @ts-check

/** Where virtual time begins: a round number of days, so that windows of the clock begin there too. */
export const START = 20_000 * 86_400_000;

const realDate = Date.now;
const realNow = performance.now.bind(performance);
const origin = performance.timeOrigin;

/** What every clock of this process answers while time is virtual, in milliseconds; undefined: the truth. */
let virtual = /** @type {number | undefined} */ (undefined);

/**
 * From here on the process' clocks can be told the time. Each reading still costs what the real one costs.
 * Library code is left as it is: it calls `Date.now()` or `performance.now()` and pays for it.
 */
export function virtualizeClocks() {
  Date.now = () => {
    const now = realDate();
    return virtual === undefined ? now : Math.floor(virtual);
  };
  performance.now = () => {
    const now = realNow();
    // Half a millisecond keeps sums with the time of origin from being rounded down to the one before.
    return virtual === undefined ? now : Math.floor(virtual) - origin + 0.5;
  };
}

/** @param {number} time what the clocks answer from here on */
export function setTime(time) {
  virtual = time;
}

/** Gives the process its own time back. */
export function releaseClocks() {
  virtual = undefined;
}

const SHORTEST_ORDER = 2 ** 16;

/**
 * Requests of many keys in random order at a steady pace: each one asked for moves virtual time on.
 * The demand is a multiple of the limit: 0.5 is always within it, at 2 about every second one is over.
 * Where all keys begin at once they also fill up at once; staggered, each does so at a time of its own.
 */
export class Traffic {
  #time = START;
  #sent = 0;
  #step;
  #keys;
  #order;
  /** How many requests the first window has, in which keys begin one after the other; 0: all at once. */
  #staggered;

  /** @param {{ keys: readonly string[], limit: number, windowMs: number, demand: number, staggered?: boolean }} options */
  constructor({ keys, limit, windowMs, demand, staggered = false }) {
    this.#keys = keys;
    this.#step = windowMs / (limit * demand * keys.length);
    this.#staggered = staggered ? limit * demand * keys.length : 0;
    const random = randomFrom(1);
    // As long as a power of two, and not much shorter than all the keys.
    this.#order = new Uint32Array(Math.max(SHORTEST_ORDER, 2 ** Math.ceil(Math.log2(keys.length))));
    for (let n = 0; n < this.#order.length; n++) this.#order[n] = Math.floor(random() * keys.length);
  }

  /** The key of the next request, at whose time the clocks now stand. */
  next() {
    this.#time += this.#step;
    virtual = this.#time;
    const key = this.#order[this.#sent++ & (this.#order.length - 1)] ?? 0;
    if (this.#sent >= this.#staggered) return /** @type {string} */ (this.#keys[key]);
    const begun = Math.ceil((this.#sent / this.#staggered) * this.#keys.length);
    return /** @type {string} */ (this.#keys[key % begun]);
  }
}

/**
 * Keys as applications have them. Each is one flat string, so that no limiter pays for joining its parts.
 * @param {number} count
 */
export function keysOf(count) {
  if (keys.length < count) {
    keys = JSON.parse(JSON.stringify(Array.from({ length: count }, (_, n) => `login:user:${n}`)));
  }
  return keys.slice(0, count);
}

/** @type {string[]} */
let keys = [];

/**
 * Random numbers in [0, 1), the same for the same seed (mulberry32).
 * @param {number} seed
 */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
