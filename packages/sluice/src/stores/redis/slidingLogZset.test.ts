// The sorted set: one member per request, for those who must answer who and when.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter } from "../../limiter.js";
import type { Reservation } from "../../reservation.js";
import { slidingLog } from "../../rule.js";
import type { Entry } from "../../store.js";
import { redisStore } from "./index.js";

const START = 1_700_000_000_000;
const { redis } = useRedis();

function limiterOf(limit: number, window: number) {
  const clock = { now: START };
  const prefix = `${randomUUID()}:`;
  const store = redisStore(redis, { prefix, clock: () => clock.now });
  const limiter = createLimiter({ store, rules: slidingLog({ limit, window, layout: "zset" }) });
  return { clock, prefix, limiter };
}

describe("entries", () => {
  test("tell when, who and how much, oldest first", async () => {
    const { clock, limiter } = limiterOf(10, 1000);
    await limiter.tryAcquire("a", 1, { id: "alice" });
    clock.now += 10;
    await limiter.tryAcquire("a", 3, { id: "bob: the second" });
    await limiter.tryAcquire("a", 9, { id: "denied" });
    await limiter.tryAcquire("b", 1, { id: "elsewhere" });
    clock.now += 10;
    await limiter.tryAcquire("a");
    expect(await limiter.entries("a")).toEqual([
      { at: START, id: "alice", cost: 1 },
      { at: START + 10, id: "bob: the second", cost: 3 },
      { at: START + 20, id: "", cost: 1 },
    ]);
  });

  test("of a period, both ends included, and the newest where there are more", async () => {
    const { clock, limiter } = limiterOf(100, 1000);
    for (let n = 0; n < 50; n++) {
      await limiter.tryAcquire("a", 1, { id: String(n) });
      clock.now += 10;
    }
    const ids = async (period: Parameters<typeof limiter.entries>[1]) =>
      (await limiter.entries("a", period)).map(({ id }) => Number(id));
    expect(await ids({ from: START + 100, to: START + 130 })).toEqual([10, 11, 12, 13]);
    expect(await ids({ from: START + 101, to: START + 109 })).toEqual([]);
    expect(await ids({ most: 3 })).toEqual([47, 48, 49]);
    expect(await ids({ to: START + 200, most: 2 })).toEqual([19, 20]);
    clock.now = START + 1000 + 470;
    expect(await ids({})).toEqual([48, 49]);
  });

  test("two requests of one id in one millisecond are two", async () => {
    const { limiter } = limiterOf(3, 1000);
    const decisions = await Promise.all(
      Array.from({ length: 5 }, () => limiter.tryAcquire("a", 1, { id: "same" })),
    );
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false, false]);
    expect(await limiter.entries("a")).toEqual(Array(3).fill({ at: START, id: "same", cost: 1 }));
    expect((await limiter.count("a")).count).toBe(3);
  });

  test("a settlement finds its own among requests of one id and millisecond", async () => {
    const { clock, limiter } = limiterOf(100, 1000);
    const [first, second] = [
      await limiter.reserve("a", 4, { id: "x" }),
      await limiter.reserve("a", 5, { id: "x" }),
    ];
    clock.now += 500;
    await first.settle(1);
    await second.settle(9);
    const entries = await limiter.entries("a");
    expect(entries.map(({ cost }) => cost).sort()).toEqual([1, 9]);
    expect(entries.map(({ at, id }) => [at, id])).toEqual([
      [START, "x"],
      [START, "x"],
    ]);
  });

  test("ids are any text of up to 256 characters, and come back as they were", async () => {
    const { limiter } = limiterOf(1_000_000, 1000);
    const ids = ["a:b:c", "1:2", ":", "::", "line\nbreak", "\0", "😀", " ", "%s", "x".repeat(256), ""];
    for (const id of ids) await limiter.tryAcquire("a", 1, { id });
    expect((await limiter.entries("a")).map(({ id }) => id).sort()).toEqual([...ids].sort());
    for (const id of ["x".repeat(257), 7, null]) {
      await expect(limiter.tryAcquire("a", 1, { id: id as string })).rejects.toMatchObject({
        code: "INVALID_OPTION",
      });
    }
  });

  test("are refused where no rule keeps them", async () => {
    const limiter = createLimiter({ store: redisStore(redis), rules: slidingLog({ limit: 1, window: 1 }) });
    await expect(limiter.entries("a")).rejects.toMatchObject({ code: "NOT_COUNTED" });
    const { limiter: named } = limiterOf(1, 1);
    for (const most of [0, -1, 0.5, 10_001]) {
      await expect(named.entries("a", { most })).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
  });
});

test("entries and counts of random traffic with weights and settlements are those of a plain list", async () => {
  const step = fc.record({
    gap: fc.oneof(fc.constant(0), fc.nat({ max: 300 })),
    cost: fc.integer({ min: 1, max: 6 }),
    settleTo: fc.option(fc.nat({ max: 9 })),
    from: fc.nat({ max: 1500 }),
    length: fc.nat({ max: 1000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40, size: "max" }), async (steps) => {
      const { clock, limiter } = limiterOf(12, 1000);
      let list: Entry[] = [];
      const open: { reservation: Reservation; id: string }[] = [];
      for (const [n, { gap, cost, settleTo, from, length }] of steps.entries()) {
        clock.now += gap;
        list = list.filter(({ at }) => clock.now - at < 1000);
        const id = `request ${n}`;
        const fits = list.reduce((sum, entry) => sum + entry.cost, cost) <= 12;
        const reservation = await limiter.reserve("a", cost, { id });
        expect(reservation.decision.allowed).toBe(fits);
        if (fits) {
          list.push({ at: clock.now, id, cost });
          open.push({ reservation, id });
        }
        if (settleTo !== null && open.length > 0) {
          const [settled] = open.splice(n % open.length, 1);
          await settled.reservation.settle(settleTo);
          list = list
            .map((entry) => (entry.id === settled.id ? { ...entry, cost: settleTo } : entry))
            .filter((entry) => entry.cost > 0);
        }
        const byId = (a: Entry, b: Entry) => a.at - b.at || a.id.localeCompare(b.id);
        const period = { from: clock.now - from, to: clock.now - from + length };
        const inside = list.filter(({ at }) => at >= period.from && at <= period.to);
        expect([...(await limiter.entries("a", period))].sort(byId)).toEqual([...inside].sort(byId));
        const { count } = await limiter.count("a", period);
        expect(count).toBe(inside.reduce((sum, entry) => sum + entry.cost, 0));
      }
    }),
    { numRuns: 25 },
  );
});

test("the largest costs are kept to the unit", async () => {
  const { clock, limiter } = limiterOf(Number.MAX_SAFE_INTEGER, 1000);
  const cost = 2 ** 52 + 1;
  expect((await limiter.tryAcquire("a", cost, { id: "large" })).remaining).toBe(2 ** 53 - 1 - cost);
  expect(await limiter.entries("a")).toEqual([{ at: START, id: "large", cost }]);
  clock.now += 999;
  expect((await limiter.tryAcquire("a", cost)).allowed).toBe(false);
  clock.now += 1;
  expect((await limiter.tryAcquire("a", Number.MAX_SAFE_INTEGER)).remaining).toBe(0);
});

test("a member per request and one for the total, and old ones go as new ones come", async () => {
  const { clock, limiter, prefix } = limiterOf(10, 1000);
  for (let n = 0; n < 100; n++) {
    await limiter.tryAcquire("a", 1);
    clock.now += 150;
  }
  const [key] = await redis.keys(`${prefix}*`);
  expect(await redis.zcard(key)).toBe(8);
});
