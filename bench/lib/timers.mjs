// @ts-check
// Timers on virtual time, for limiters that make their callers wait.
import { setTime } from "./traffic.mjs";

/** @typedef {{ at: number, order: number, call: () => void, everyMs?: number }} Timer */

const real = { setTimeout, clearTimeout, setInterval, clearInterval };

/** Stands in for the timers of this process from when it is made until it is released. */
export class VirtualTimers {
  now;
  #made = 0;
  /** A heap: the timer that is due first is at the top. @type {Timer[]} */
  #heap = [];
  /** @type {WeakSet<object>} */
  #cleared = new WeakSet();

  /** @param {number} now */
  constructor(now) {
    this.now = now;
    setTime(now);
    const clear = (/** @type {object | undefined} */ handle) => handle && this.#cleared.add(handle);
    Object.assign(globalThis, {
      setTimeout: this.#setter(false),
      setInterval: this.#setter(true),
      clearTimeout: clear,
      clearInterval: clear,
    });
  }

  release() {
    Object.assign(globalThis, real);
  }

  /**
   * Lets time pass until then, or until there is nothing left to wait for.
   * @param {number} time
   * @param {() => boolean} [done]
   */
  async passUntil(time, done = () => false) {
    await settled();
    while (!done()) {
      const timer = this.#heap[0];
      if (timer === undefined || timer.at > time) break;
      this.#take();
      if (this.#cleared.has(timer)) continue;
      this.now = Math.max(this.now, timer.at);
      setTime(this.now);
      if (timer.everyMs !== undefined) {
        timer.at += timer.everyMs;
        timer.order = this.#made++;
        this.#put(timer);
      }
      timer.call();
      await settled();
    }
    if (time < Infinity) {
      this.now = time;
      setTime(time);
    }
  }

  /** @param {boolean} repeated */
  #setter(repeated) {
    return (/** @type {(...args: unknown[]) => void} */ call, ms = 1, /** @type {unknown[]} */ ...args) => {
      const afterMs = Math.max(1, Math.trunc(ms)); // as Node does
      const timer = {
        at: this.now + afterMs,
        order: this.#made++,
        call: () => call(...args),
        ...(repeated && { everyMs: afterMs }),
        unref: () => timer,
        ref: () => timer,
      };
      this.#put(timer);
      return timer;
    };
  }

  /** @param {Timer} timer */
  #put(timer) {
    const heap = this.#heap;
    let place = heap.push(timer) - 1;
    while (place > 0) {
      const above = (place - 1) >> 1;
      if (!before(timer, heap[above])) break;
      heap[place] = /** @type {Timer} */ (heap[above]);
      place = above;
    }
    heap[place] = timer;
  }

  #take() {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below + 1 < heap.length && before(heap[below + 1], heap[below])) below++;
      if (below >= heap.length || !before(heap[below], last)) break;
      heap[place] = /** @type {Timer} */ (heap[below]);
      place = below;
    }
    heap[place] = last;
  }
}

/** @param {Timer | undefined} a @param {Timer | undefined} b */
function before(a, b) {
  if (a === undefined || b === undefined) return false;
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** When all that follows from promises has happened. */
function settled() {
  return new Promise((resolve) => setImmediate(resolve));
}
