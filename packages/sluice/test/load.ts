import type { Decision } from "../src/decision.js";
import type { Limiter } from "../src/limiter.js";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

export interface Sample {
  readonly startedAt: number;
  readonly tookMs: number;
  readonly decision: Decision;
}

/** Calls every few milliseconds, and measures how long this process itself was kept from running. */
export class Load {
  readonly samples: Sample[] = [];
  readonly errors: unknown[] = [];
  /** The longest this process was late for its own timers. */
  stallMs = 0;
  #running = true;
  readonly #done: Promise<unknown>;
  readonly #deadlineMs: number;

  constructor(limiter: Limiter, deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
    this.#done = Promise.all([this.#call(limiter), this.#watch()]);
  }

  async #call(limiter: Limiter): Promise<void> {
    for (let n = 0; this.#running; n++) {
      for (let k = 0; k < 5; k++) {
        const startedAt = performance.now();
        limiter.tryAcquire(`key ${(n + k) % 50}`).then(
          (decision) => this.samples.push({ startedAt, tookMs: performance.now() - startedAt, decision }),
          (error) => this.errors.push(error),
        );
      }
      await sleep(3);
    }
  }

  async #watch(): Promise<void> {
    while (this.#running) {
      const before = performance.now();
      await sleep(5);
      this.stallMs = Math.max(this.stallMs, performance.now() - before - 5);
    }
  }

  since(time: number): Sample[] {
    return this.samples.filter(({ startedAt }) => startedAt >= time);
  }

  /** Resolves once calls are answered by the store, `count` of them one after the other. */
  async healthy(count = 20): Promise<void> {
    for (;;) {
      const last = this.samples.slice(-count);
      if (last.length === count && last.every(({ decision }) => decision.degraded === undefined)) return;
      await sleep(5);
    }
  }

  /** Resolves once every call is answered. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
    await sleep(this.#deadlineMs + 10);
  }
}
