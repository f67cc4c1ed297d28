/** Time as a decorator takes it: a clock that only goes forward, and a way to be called later. */
export interface Timing {
  /** Milliseconds on a monotonic clock, from any beginning. */
  now(): number;
  later(ms: number, call: () => void): Timer;
  /** From 0 to 1. */
  random(): number;
}

/** Whether a timer keeps the process from ending. */
interface Timer {
  ref(): unknown;
  unref(): unknown;
}

/** An event loop that stalled reads what has arrived in the meantime before it judges anything late. */
export const systemTiming: Timing = {
  now: () => performance.now(),
  later: (ms, call) => setTimeout(() => setImmediate(call), ms),
  random: Math.random,
};

/** Something that ends by itself or is ended when its time is over. */
export interface Pending {
  expire: (() => void) | undefined;
}

/**
 * Ends many things after the same time each, with one timer for all of them: they fall due in the
 * order they came. The timer keeps a process alive only while something is pending, if at all.
 */
export class Deadlines {
  readonly #ms: number;
  readonly #timing: Timing;
  readonly #holdsProcess: boolean;
  #queue: { readonly dueAt: number; readonly pending: Pending }[] = [];
  #head = 0;
  #pending = 0;
  #timer: Timer | undefined;

  constructor(ms: number, timing: Timing, holdsProcess: boolean) {
    this.#ms = ms;
    this.#timing = timing;
    this.#holdsProcess = holdsProcess;
  }

  add(expire: () => void): Pending {
    const pending: Pending = { expire };
    this.#queue.push({ dueAt: this.#timing.now() + this.#ms, pending });
    this.#pending++;
    if (this.#timer === undefined) this.#arm();
    else if (this.#pending === 1 && this.#holdsProcess) this.#timer.ref();
    return pending;
  }

  /** Tells whether it was still pending. */
  done(pending: Pending): boolean {
    if (pending.expire === undefined) return false;
    pending.expire = undefined;
    this.#pending--;
    if (this.#pending === 0) this.#timer?.unref();
    return true;
  }

  #arm(): void {
    const wait = this.#queue[this.#head].dueAt - this.#timing.now();
    this.#timer = this.#timing.later(Math.max(1, Math.ceil(wait)), () => this.#end());
    if (this.#pending === 0 || !this.#holdsProcess) this.#timer.unref();
  }

  #end(): void {
    this.#timer = undefined;
    const now = this.#timing.now();
    for (; this.#head < this.#queue.length; this.#head++) {
      const { dueAt, pending } = this.#queue[this.#head];
      const { expire } = pending;
      if (expire === undefined) continue;
      if (dueAt > now) break;
      this.done(pending);
      expire();
    }
    this.#queue = this.#queue.slice(this.#head);
    this.#head = 0;
    if (this.#queue.length > 0 && this.#timer === undefined) this.#arm();
  }
}
