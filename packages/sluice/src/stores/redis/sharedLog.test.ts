// Several exact windows over one key share one log on Redis: they answer as the logs of their own in memory do.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import type { Reservation } from "../../reservation.js";
import { type Rule, slidingLog } from "../../rule.js";
import { memoryStore } from "../memory.js";
import { redisStore } from "./index.js";

const START = 1_700_000_000_000;
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const { redis } = useRedis();

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

  test("go on where a window was empty and the clock then stepped back", async () => {
    const clock = { now: START };
    const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => clock.now });
    const limiter = createLimiter({ name: "back", store, rules: [log(50, SECOND), log(100, MINUTE)] });
    const reservation = await limiter.reserve("a", 8);
    clock.now += 1500;
    await reservation.settle(3);
    clock.now = START - 1;
    expect((await limiter.tryAcquire("a")).rules.map(({ remaining }) => remaining)).toEqual([46, 96]);
    expect((await limiter.tryAcquire("a")).rules.map(({ remaining }) => remaining)).toEqual([45, 95]);
  });

  // A chunk ends after some 28 entries, or after some 4.7 hours. Gaps are shares of a window's length, where it matters.
  const gap = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1.1, noNaN: true }));
  const cost = fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { arbitrary: fc.nat({ max: 90_000 }), weight: 1 },
  );
  const step = fc.record({
    gap,
    cost,
    times: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.nat({ max: 40 }) }),
    spacing: fc.nat({ max: 400 }),
    what: fc.nat({ max: 19 }),
    which: fc.nat(),
  });
  const windows = fc.uniqueArray(fc.constantFrom(SECOND, MINUTE, HOUR, 5 * HOUR, DAY, 5 * DAY), {
    minLength: 2,
    maxLength: 3,
  });
  const limits = fc.tuple(...[1, 2, 3].map(() => fc.constantFrom(30, 1000, 100_000, 1_000_000)));

  test("answer as logs of their own, on random traces", { timeout: 120_000 }, async () => {
    const trace = fc.array(step, { minLength: 60, maxLength: 120 });
    await fc.assert(
      fc.asyncProperty(windows, limits, trace, async (windows, limits, steps) => {
        const pair = new Pair(windows.map((window, w) => log(limits[w], window)));
        const open: (readonly Reservation[])[] = [];
        for (const { gap, cost, times, spacing, what, which } of steps) {
          pair.clock.now += Math.floor(gap * windows[which % windows.length]);
          if (what < 3) open.push(await pair.reserve(cost));
          else if (what < 6 && open.length > 0) {
            // Later than its shortest window a settlement is in the shared log, and not in that window's own in memory.
            const [made] = open.splice(which % open.length, 1);
            const age = pair.clock.now - made[0].decision.rules[0].at;
            if (age < Math.min(...windows)) await pair.settle(made, cost);
          } else for (let n = 0; n < times; n++, pair.clock.now += spacing) await pair.take(cost);
        }
      }),
      { numRuns: 150, seed: 20_261_115 },
    );
  });
});
