// Several exact windows over one key share one log on Redis: they answer as the logs of their own in memory do.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SharedLogTrace } from "../../../test/sharedLogTrace.js";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import type { Reservation } from "../../reservation.js";
import { fixedWindow, type Rule, slidingLog } from "../../rule.js";
import { memoryStore } from "../memory.js";
import { redisStore } from "./index.js";

const START = 1_700_000_000_000;
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const { redis } = useRedis();

/** Played at one time. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
/** How long a failing trace is shrunk. */
const SHRINKING_MS = 10_000;

/** The same limiter on both stores, by one clock; whatever is asked of it, both must answer alike. */
class Pair {
  readonly clock = { now: START };
  readonly #limiters: readonly Limiter[];

  constructor(rules: readonly Rule[]) {
    const clock = () => this.clock.now;
    const stores = [memoryStore({ clock }), redisStore(redis, { prefix: `${randomUUID()}:`, clock })];
    this.#limiters = stores.map((store) => createLimiter({ name: "pair", store, rules }));
  }

  async take(cost = 1) {
    const [memory, other] = await Promise.all(this.#limiters.map((limiter) => limiter.tryAcquire("a", cost)));
    expect(other).toEqual(memory);
    return memory;
  }

  async reserve(cost: number): Promise<readonly Reservation[]> {
    const made = await Promise.all(this.#limiters.map((limiter) => limiter.reserve("a", cost)));
    expect(made[1].decision).toEqual(made[0].decision);
    return made;
  }

  async settle(made: readonly Reservation[], actual: number) {
    await Promise.all(made.map((reservation) => reservation.settle(actual)));
    return this.status();
  }

  async status() {
    const [memory, other] = await Promise.all(this.#limiters.map((limiter) => limiter.status("a")));
    expect(other).toEqual(memory);
    return memory;
  }
}

const log = (limit: number, window: number) => slidingLog({ limit, window });

describe("windows that share a log", () => {
  test("keep the entries that the shortest has not passed yet, whatever the longest has", async () => {
    const pair = new Pair([log(10, HOUR), log(100, DAY)]);
    for (const hours of [0, 23.5, 24.1, 24.6]) {
      pair.clock.now = START + hours * HOUR;
      expect((await pair.take()).allowed).toBe(true);
    }
  });

  test("count a settlement in an older chunk, each of them", async () => {
    const pair = new Pair([log(300, MINUTE), log(300, 30 * DAY)]);
    const at = (time: number) => {
      pair.clock.now = START + time;
    };
    at(3684543858);
    await pair.reserve(1);
    at(3721543485);
    await pair.take();
    at(5821632261);
    const settled = await pair.reserve(0);
    at(6319757763);
    await pair.take(2);
    at(6368613752);
    await pair.reserve(226);
    at(6368613999);
    const [, month] = await pair.settle(settled, 5);
    expect(month.count).toBe(233);
  });

  test("pass an oldest entry that was cancelled", async () => {
    const pair = new Pair([log(100, SECOND), log(100, MINUTE)]);
    const oldest = await pair.reserve(1);
    for (let n = 0; n < 100; n++) {
      pair.clock.now += 20;
      await pair.take();
    }
    const [, minute] = await pair.settle(oldest, 0);
    expect(minute.oldestAt).toBe(START + 20);
    await pair.take();
    expect((await pair.take()).retryAfterMs).toBe(START + 20 + MINUTE - pair.clock.now);
  });

  test("wait for the whole of what is counted where cost and count are past 2^53", async () => {
    const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => START });
    const limit = Number.MAX_SAFE_INTEGER;
    const limiter = createLimiter({ name: "most", store, rules: [log(limit, MINUTE), log(limit, HOUR)] });
    await limiter.tryAcquire("a", 4);
    expect((await limiter.tryAcquire("a", limit)).retryAfterMs).toBe(HOUR);
  });

  test.each([
    ["one window", [log(100, DAY)]],
    ["two windows", [log(100, DAY), log(100, HOUR)]],
    ["beside another algorithm", [log(100, DAY), fixedWindow({ name: "fixed", limit: 100, window: DAY })]],
  ])("tell times apart where an entry is as late as a chunk can tell: %s", async (_, rules) => {
    for (const offset of [2 ** 24 - 1, 2 ** 24, 2 ** 24 + 1]) {
      const pair = new Pair(rules);
      for (const time of [0, 5, offset, offset + 1]) {
        pair.clock.now = START + time;
        await pair.take();
      }
      for (const left of [0, 5, offset, offset + 1]) {
        pair.clock.now = START + left + DAY - 1;
        const [{ oldestAt }] = await pair.status();
        expect(oldestAt).toBe(START + left);
      }
    }
  });

  test("pass several chunks at once, and go on from there", async () => {
    const pair = new Pair([log(1000, SECOND), log(1000, MINUTE)]);
    for (let n = 0; n < 90; n++) {
      await pair.take();
      pair.clock.now += 7;
    }
    for (const left of [60, 61, 89]) {
      pair.clock.now = START + left * 7 + SECOND;
      const { rules } = await pair.take();
      expect(1000 - rules[0].remaining).toBe(90 - left + [60, 61, 89].indexOf(left));
    }
  });

  test.each([-1, 10])("go on where a window was empty and the clock then stepped back to %i", async (ms) => {
    const clock = { now: START };
    const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => clock.now });
    const limiter = createLimiter({ name: "back", store, rules: [log(50, SECOND), log(100, MINUTE)] });
    const reservation = await limiter.reserve("a", 8);
    clock.now += 1500;
    await reservation.settle(3);
    clock.now = START + ms;
    expect((await limiter.tryAcquire("a")).rules.map(({ remaining }) => remaining)).toEqual([46, 96]);
    expect((await limiter.tryAcquire("a")).rules.map(({ remaining }) => remaining)).toEqual([45, 95]);
  });

  // The first of these windows forgets what had left it before the newest did: see `isNewest` in test/sharedLog.ts.
  test("go on where the newest has left a window, is settled, and the clock then stepped back", async () => {
    const clock = { now: START };
    const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => clock.now });
    const rules = [log(100_000, SECOND), log(100_000, MINUTE)];
    const limiter = createLimiter({ name: "late", store, rules });
    await limiter.tryAcquire("a", 2);
    clock.now += 10;
    const newest = await limiter.reserve("a", 5);
    clock.now += SECOND;
    await newest.settle(70_000);
    clock.now = START + 20;
    expect((await limiter.status("a")).map(({ count }) => count)).toEqual([70_002, 70_002]);
  });

  test("count from an entry on that was cancelled, and of which more is settled then", async () => {
    const pair = new Pair([log(100, SECOND), log(100, MINUTE)]);
    const [cancelled, settled] = [await pair.reserve(1), await pair.reserve(0)];
    pair.clock.now += 10;
    await pair.take();
    await pair.settle(cancelled, 0);
    await pair.settle(settled, 90);
    expect((await pair.take(20)).retryAfterMs).toBe(MINUTE - 10);
    expect((await pair.take(100)).retryAfterMs).toBe(MINUTE);
  });

  test.concurrent.each(SEEDS)("answer as one list of costs, on random traces from seed %i", async (seed) => {
    const step = fc.tuple(fc.maxSafeNat(), fc.maxSafeNat());
    const steps = fc.array(step, { minLength: 20, maxLength: 60, size: "max" });
    const prefix = () => `${randomUUID()}:`;
    let shrinkUntil = Infinity;
    const property = fc.asyncProperty(fc.maxSafeNat(), steps, async (scenario, steps) => {
      if (performance.now() > shrinkUntil) return;
      const trace = new SharedLogTrace((clock) => redisStore(redis, { prefix: prefix(), clock }), scenario);
      await trace.play(steps).catch((error) => {
        shrinkUntil = Math.min(shrinkUntil, performance.now() + SHRINKING_MS);
        throw error;
      });
    });
    await fc.assert(property, { numRuns: 20, seed, unbiased: true });
  });
});
