import { beforeEach, expect, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import type { Reservation } from "../../reservation.js";
import {
  fixedWindow,
  leakyBucket,
  type Rule,
  rule,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "../../rule.js";
import type { Store } from "../../store.js";
import { redisStore } from "./index.js";

const { redis } = useRedis();
beforeEach(() => redis.flushall());

const rulesOf = (limit: number, window: number): readonly Rule[] => [
  slidingLog({ name: "log", limit, window }),
  slidingLog({ name: "second log", limit: limit * 2, window: window * 3 }),
  rule({ algorithm: "slidingLog", name: "leased log", limit, window, lease: Math.ceil(window / 3) }),
  rule({ algorithm: "tokenBucket", name: "leased bucket", limit, window, lease: Math.ceil(window / 3) }),
  slidingLog({ name: "zset", limit, window, layout: "zset" }),
  slidingCells({ name: "cells", limit, window }),
  slidingCells({ name: "weighted", limit, window, mode: "weighted", cells: 7 }),
  slidingCounter({ name: "counter", limit, window }),
  fixedWindow({ name: "fixed", limit, window }),
  tokenBucket({ name: "bucket", limit, window }),
  leakyBucket({ name: "leaky", limit, window, burst: limit }),
];

/** One limiter per rule, so that no rule keeps another from being charged, and one with all of them. */
function limitersOf(store: Store, limit: number, window: number): Limiter[] {
  const rules = rulesOf(limit, window);
  return [...rules, rules].map((rules, n) => createLimiter({ name: `${window} ms ${n}`, store, rules }));
}

/** Every key there is, and the milliseconds it has to live. */
async function timesToLive(): Promise<Map<string, number>> {
  const times = new Map<string, number>();
  for await (const keys of redis.scanStream({ count: 1000 })) {
    for (const key of keys as string[]) times.set(key, await redis.pttl(key));
  }
  return times;
}

test("every key expires, whatever was done with it", async () => {
  const store = redisStore(redis);
  const windows = [1, 2, 500, 60_000, 30 * 86_400_000];
  let keys = 0;
  for (const window of windows) {
    await Promise.all(
      limitersOf(store, 20, window).map(async (limiter, l) => {
        for (const key of ["a", "b", "c"]) {
          for (let n = 0; n < 8; n++) {
            const cost = ((n * 7 + l) % 5) + 1;
            const reservation = await limiter.reserve(key, cost);
            if (n % 3 === 0) await reservation.settle(cost * 2);
            if (n % 3 === 1) await reservation.cancel();
            await limiter.tryAcquire(key, 50); // denied, and no trace of it
            await limiter.peek(`never charged ${key}`);
            await limiter.status(`never charged ${key}`);
          }
        }
        await limiter.reset("b");
        await (await limiter.reserve("c", 1)).settle(0);
      }),
    );
    const times = await timesToLive();
    keys += times.size;
    for (const [key, ms] of times) {
      expect(key).not.toContain("never charged");
      // Gone between SCAN and PTTL, or with a time to live: at most three windows, twice, and the slack.
      if (ms !== -2) expect(ms, key).toBeGreaterThan(0);
      expect(ms, key).toBeLessThanOrEqual(window * 6 + 1000);
    }
    await redis.flushall();
  }
  expect(keys).toBeGreaterThan(60);
});

test("a key outlives what it counts, after the clock stepped back too", async () => {
  const clock = { now: 1_700_000_000_000 };
  const store = redisStore(redis, { clock: () => clock.now });
  // Without the compact logs: they were given their time to live when the clock was ahead, and Redis keeps
  // it as a point in time, which a test's clock cannot move.
  const limiters = limitersOf(store, 20, 60_000).slice(4, -1);
  const start = clock.now;
  for (const ahead of [0, 1, 59_999, 61_000, 200_000, 10 * 3_600_000, 3 * 3_600_000, 0]) {
    clock.now = start + ahead;
    for (const limiter of limiters) await limiter.tryAcquire("a");
    for (const limiter of limiters) {
      const [{ count, resetAfterMs }] = await limiter.status("a");
      expect(count).toBeGreaterThan(0);
      const [key] = await redis.keys(`*/${limiter.name}/*`);
      expect(await redis.pttl(key), `${key} at ${ahead}`).toBeGreaterThanOrEqual(resetAfterMs);
    }
  }
});

test("a log whose window has become longer lives as long as that one, whatever is done first", async () => {
  const clock = { now: 1_700_000_000_000 };
  const store = redisStore(redis, { clock: () => clock.now });
  const of = (window: number) =>
    createLimiter({ name: "api", store, rules: slidingLog({ name: "log", limit: 100, window }) });
  for (const isSettledFirst of [false, true]) {
    await redis.flushall();
    const reservation = await of(60_000).reserve("a", 1);
    clock.now += 5;
    const longer = of(3_600_000);
    const later = await longer.reserve("a", isSettledFirst ? 0 : 1);
    clock.now += 5;
    await of(60_000).tryAcquire("a");
    clock.now += 5;
    await (isSettledFirst ? later.settle(2) : longer.tryAcquire("a"));
    await reservation.settle(3);
    const [{ resetAfterMs }] = await longer.status("a");
    const [key] = await redis.keys("*");
    expect(await redis.pttl(key)).toBeGreaterThan(3_600_000 + resetAfterMs);
  }
});

test("what is given back in full leaves no key behind", async () => {
  const store = redisStore(redis);
  for (const limiter of limitersOf(store, 20, 60_000)) {
    const reservations = [await limiter.reserve("a", 3), await limiter.reserve("a", 4)];
    for (const reservation of reservations) await reservation.cancel();
    expect(await redis.keys("*"), limiter.name).toEqual([]);
  }
});

test("a cancellation after the key has gone leaves no count, and none below zero", async () => {
  const store = redisStore(redis);
  for (const limiter of limitersOf(store, 20, 60_000)) {
    const reservation = await limiter.reserve("a", 3);
    await redis.flushall();
    await reservation.cancel();
    expect(await redis.keys("*"), limiter.name).toEqual([]);
    const { limit, remaining } = await limiter.peek("a");
    expect(remaining).toBe(limit);
  }
});

/** So long that no store would ask for it: a key that has it was not given another time to live since. */
const MARK = 10 ** 12;
/** What a key outlives its state by, on an injected clock. */
const SLACK = 3_600_000;

const used = (limiter: Limiter) => limiter.tryAcquire("a");
const held: Reservation[] = [];

test.each([
  { what: "a log", rules: slidingLog({ limit: 1000, window: 7000 }), use: used },
  {
    what: "a log of several windows",
    rules: [7000, 1000, 3000].map((window) => slidingLog({ name: `${window}`, limit: 1000, window })),
    use: used,
  },
  {
    what: "a log of which more and more is taken at once",
    rules: slidingLog({ limit: 100_000, window: 7000 }),
    use: (limiter: Limiter, n: number) => limiter.tryAcquire("a", n + 1),
  },
  {
    what: "a log that is held and settled in turn",
    rules: rule({ algorithm: "slidingLog", limit: 1000, window: 7000, lease: 6000 }),
    use: async (limiter: Limiter) => (await limiter.reserve("a", 2)).settle(1),
  },
  {
    what: "a log of which something is always held",
    rules: rule({ algorithm: "slidingLog", limit: 1000, window: 7000, lease: 6000 }),
    use: async (limiter: Limiter) => {
      held.push(await limiter.reserve("a", 2));
      if (held.length > 2) await held.shift()?.settle(1);
    },
  },
])("$what that is in use never expires while it counts something", async ({ rules, use }) => {
  // Time comes to a multiple of the window, by which keys are renewed, before anything has left it.
  let now = 242_857_142 * 7000 + 3000;
  const limiter = createLimiter({ name: "used", store: redisStore(redis, { clock: () => now }), rules });
  let livesUntil = 0;
  for (let n = 0; n < 60; n++) {
    now += 1000;
    await use(limiter, n);
    const [key, ...others] = await redis.keys("*");
    expect(others).toEqual([]);
    const left = await redis.pttl(key);
    if (left < MARK / 2) livesUntil = now + left - SLACK;
    expect(livesUntil).toBeGreaterThan(now + 6900); // some of it was gone when it was read
    await redis.pexpire(key, MARK);
  }
});
