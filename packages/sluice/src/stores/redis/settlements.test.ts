// What settlements in any order make of a compact log, with a lease and without.
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter } from "../../limiter.js";
import type { Reservation } from "../../reservation.js";
import { rule, slidingLog } from "../../rule.js";
import { redisStore } from "./index.js";

const START = 1_700_000_000_000;
const LIMIT = 1e9;
const { redis } = useRedis();

/** Limiters of one name and rule name on one store, as before and after a deployment, and the key they have. */
function world() {
  const clock = { now: START };
  const prefix = `${randomUUID()}:`;
  const store = redisStore(redis, { prefix, clock: () => clock.now });
  const limiterOf = (window: number, lease: number) =>
    createLimiter({
      name: "api",
      store,
      rules: rule({ algorithm: "slidingLog", name: "log", limit: LIMIT, window, lease }),
    });
  return { clock, limiterOf, keys: () => redis.keys(`${prefix}*`) };
}

test("a rule that is given a lease, or loses it, reads nothing of the other layout", async () => {
  const { clock, limiterOf } = world();
  const [plain, leased] = [limiterOf(60_000, 60_000), limiterOf(60_000, 1000)];
  for (let n = 1; n <= 5; n++) {
    clock.now += 5;
    await plain.tryAcquire("a");
    const { decision } = await leased.reserve("a", 2);
    expect(decision.remaining).toBe(LIMIT - n * 2);
  }
  expect((await plain.status("a"))[0].count).toBe(5);
  expect((await leased.status("a"))[0].count).toBe(10);
});

test("a log with a lease and another window lives as long as it must", async () => {
  const { clock, limiterOf, keys } = world();
  const [short, long] = [limiterOf(60_000, 1000), limiterOf(3_600_000, 1_800_000)];
  await short.reserve("a", 1);
  clock.now += 5;
  await long.reserve("a", 1);
  const times = await Promise.all((await keys()).map((key) => redis.pttl(key)));
  // On a clock of its own a key outlives what it counts by an hour.
  expect(Math.max(...times)).toBeGreaterThan(3_600_000 + 1_800_000);
});

test("a log does not grow where what leaves the window is always noticed by a settlement out of order", async () => {
  const { clock, limiterOf, keys } = world();
  const limiter = limiterOf(1005, 500);
  const sizes: number[] = [];
  for (let n = 0; n < 1500; n++) {
    const first = await limiter.reserve("a", 1);
    clock.now += 1;
    const second = await limiter.reserve("a", 1);
    clock.now += 1;
    await second.settle(1);
    clock.now += 7;
    await first.settle(1); // the oldest has left the window since the settlement before
    clock.now += 1;
    if (n % 500 === 499) sizes.push(await redis.hlen((await keys())[0]));
  }
  expect(Math.max(...sizes)).toBeLessThanOrEqual(sizes[0] + 2);
  expect((await limiter.status("a"))[0].count).toBe(200);
});

test("what never fits is told so, though with what is held it is past 2^53", async () => {
  const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => START });
  const rules = rule({ algorithm: "slidingLog", limit: 2 ** 52, window: 1000, lease: 10 });
  const limiter = createLimiter({ store, rules });
  await limiter.reserve("a", 2 ** 52);
  expect((await limiter.peek("a", 2 ** 52)).retryAfterMs).toBe(10);
  expect((await limiter.peek("a", 2 ** 52 + 1)).retryAfterMs).toBe(Infinity);
});

test("a chunk that many settlements are put into becomes two, and all of them are counted", async () => {
  const { clock, limiterOf, keys } = world();
  const limiter = limiterOf(3_600_000, 1_800_000);
  const open: Reservation[] = [];
  for (let n = 0; n < 1000; n++) {
    clock.now += 1;
    open.push(await limiter.reserve("a", 1));
  }
  for (const newest of [open.pop(), open.splice(300, 1)[0]]) await newest?.settle(70_000);
  for (const reservation of open) await reservation.settle(2);
  const [key] = await keys();
  for (const field of await redis.hkeysBuffer(key)) expect(await redis.hstrlen(key, field)).toBeLessThan(800);
  const [{ count, oldestAt, newestAt }] = await limiter.status("a");
  expect([count, oldestAt, newestAt]).toEqual([140_000 + 998 * 2, START + 1, START + 1000]);
  for (const [from, to, expected] of [
    [1, 300, 600],
    [200, 301, 70_202],
    [302, 999, 1396],
    [999, 1000, 70_002],
  ]) {
    expect((await limiter.count("a", { from: START + from, to: START + to })).count).toBe(expected);
  }
  clock.now = START + 3_600_000 + 500;
  await limiter.tryAcquire("a");
  expect((await limiter.status("a"))[0]).toMatchObject({
    count: 70_000 + 499 * 2 + 1,
    oldestAt: START + 501,
  });
});

test("a log counts on to the unit when what is settled brings all that ever passed past 2^53", async () => {
  const clock = { now: START };
  const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => clock.now });
  const limiter = createLimiter({ store, rules: slidingLog({ limit: 2 ** 52, window: 1000 }) });
  await limiter.tryAcquire("a", 2 ** 52 - 1);
  clock.now += 500;
  await limiter.tryAcquire("a", 1);
  clock.now += 500;
  const first = await limiter.reserve("a", 5);
  clock.now += 1;
  const second = await limiter.reserve("a", 0);
  clock.now += 1;
  await limiter.tryAcquire("a", 2 ** 52 - 10);
  await first.settle(105);
  expect((await limiter.status("a"))[0].count).toBe(2 ** 52 + 96);
  await second.settle(1);
  expect((await limiter.status("a"))[0].count).toBe(2 ** 52 + 97);
});
