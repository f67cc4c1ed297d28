// What the compact log and the cells keep in Redis, and how much work it is to go on with it.
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { commandStats, resetStats } from "../../../test/redisStats.js";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import { type Rule, rule, slidingCells, slidingCounter, slidingLog } from "../../rule.js";
import { memoryStore } from "../memory.js";
import { redisStore } from "./index.js";

const START = 1_700_000_000_000;
const [MINUTE, DAY] = [60_000, 86_400_000];
const { redis } = useRedis();

interface Kept {
  readonly clock: { now: number };
  readonly limiter: Limiter;
  /** Another limiter over the same counts, as after a deployment. */
  changed(rules: Rule | readonly Rule[]): Limiter;
  keys(): Promise<readonly string[]>;
  bytes(): Promise<number>;
  /** Takes one at each of these times, and waits for all. */
  takeAt(times: readonly number[], cost?: number): Promise<number>;
}

function keep(rules: Rule | readonly Rule[]): Kept {
  const clock = { now: START };
  const prefix = `${randomUUID()}:`;
  const keys = () => redis.keys(`${prefix}*`);
  const limiterOf = (rules: Rule | readonly Rule[], clock: { now: number }) =>
    createLimiter({ name: "kept", store: redisStore(redis, { prefix, clock: () => clock.now }), rules });
  return {
    clock,
    limiter: limiterOf(rules, clock),
    changed: (others) => limiterOf(others, clock),
    keys,
    async bytes() {
      const sizes = (await keys()).map((key) => redis.call("MEMORY", "USAGE", key, "SAMPLES", 0));
      return (await Promise.all(sizes)).map(Number).reduce((sum, size) => sum + size, 0);
    },
    async takeAt(times, cost = 1) {
      let admitted = 0;
      for (let first = 0; first < times.length; first += 1000) {
        // A store for each, since what one sends at a time goes by one clock.
        const calls = times
          .slice(first, first + 1000)
          .map((now) => limiterOf(rules, { now }).tryAcquire("a", cost));
        for (const { allowed } of await Promise.all(calls)) admitted += allowed ? 1 : 0;
      }
      return admitted;
    },
  };
}

const every = (ms: number, count: number, from = START) =>
  Array.from({ length: count }, (_, n) => from + Math.floor(n * ms));

/** The Redis commands that one call costs, within the script. */
async function commandsOf(call: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  await resetStats(redis);
  await call();
  const stats = Object.entries(await commandStats(redis)).filter(
    ([name]) => !/^(config|info|evalsha)/.test(name),
  );
  return Object.fromEntries(stats.map(([name, { calls }]) => [name, calls]));
}

describe("the compact log", () => {
  test("does not grow as windows go by", async () => {
    const { takeAt, bytes, clock, limiter } = keep(slidingLog({ limit: 500, window: 1000 }));
    const sizes: number[] = [];
    for (let w = 0; w < 12; w++) {
      clock.now = START + w * 1000;
      expect(await takeAt(every(2, 500, clock.now))).toBe(500);
      sizes.push(await bytes());
    }
    clock.now += 999;
    expect((await limiter.status("a"))[0].count).toBe(500);
    expect(Math.max(...sizes.slice(2))).toBeLessThan(sizes[0] * 1.3);
  });

  test("goes on with bounded work and memory after a large log was idle", async () => {
    const window = 30 * DAY;
    const { takeAt, bytes, clock, limiter } = keep(slidingLog({ limit: 1_000_000, window }));
    const spacing = 20_000;
    expect(await takeAt(every(spacing, 40_000))).toBe(40_000);
    const full = await bytes();
    const newest = START + 39_999 * spacing;

    for (const left of [10_000, 30_000]) {
      clock.now = START + (left - 1) * spacing + window;
      for (const verb of ["peek", "tryAcquire"] as const) {
        const { hget = 0, hdel = 0, hset = 0, ...others } = await commandsOf(() => limiter[verb]("a"));
        expect(hget).toBeLessThan(40); // a thousand chunks, halved and halved again
        expect(hdel + hset).toBeLessThanOrEqual(2);
        expect(["", "pexpire"]).toContain(Object.keys(others).join());
      }
      expect((await limiter.status("a"))[0].count).toBe(40_000 - left + (left > 10_000 ? 2 : 1));
    }
    // Old chunks go a hundred at a time, far quicker than new ones come.
    for (let n = 0; n < 15; n++) {
      clock.now += spacing;
      await limiter.tryAcquire("a");
    }
    expect(await bytes()).toBeLessThan(full * 0.4);
    clock.now = newest + 3 * window;
    expect(await commandsOf(() => limiter.tryAcquire("a"))).toMatchObject({ hget: expect.any(Number) });
    expect(await bytes()).toBeLessThan(1000);
  });

  test("gives back what a pause has left behind", async () => {
    for (const entries of [60, 1000]) {
      const { takeAt, bytes } = keep([
        slidingLog({ limit: 1000, window: "1m" }),
        slidingLog({ limit: 1000, window: "1h" }),
      ]);
      expect(await takeAt(every(10, entries))).toBe(entries);
      const full = await bytes();
      expect(full).toBeGreaterThan(entries * 5);
      expect(await takeAt([START + 120 * MINUTE])).toBe(1);
      expect(await bytes()).toBeLessThan(full - entries * 4);
    }
  });

  test.each([
    // The day's cursor leaves a chunk that the hour's is still in, and later two of them at once.
    ["hours apart", [0, 1410, 1446, 1728, 2008, 2288, 2568, 2848, 2892]],
    ["in bursts, hours apart", [0, ...every(1, 40, 60), 360, 660, ...every(1, 30, 960), 1470, 1500]],
    ["evenly", every(6, 240, 0)],
  ])("of an hour and a day does not grow as the same comes again and again: %s", async (_, minutes) => {
    const { takeAt, bytes } = keep([
      slidingLog({ limit: 1000, window: "1h" }),
      slidingLog({ limit: 1000, window: "1d" }),
    ]);
    const sizes: number[] = [];
    for (let round = 0; round < 60; round++) {
      const from = START + round * 3 * DAY;
      expect(await takeAt(minutes.map((minute) => from + minute * MINUTE))).toBe(minutes.length);
      sizes.push(await bytes());
    }
    expect(sizes[59]).toBeLessThan(sizes[0] * 1.5);
  });

  test("of three exact windows is one, of the size of one", async () => {
    const windows = [
      slidingLog({ name: "second", limit: 50, window: "1s" }),
      slidingLog({ name: "minute", limit: 1000, window: "1m" }),
      slidingLog({ name: "hour", limit: 1000, window: "1h" }),
    ];
    const [one, three] = [keep(windows[2]), keep(windows)];
    for (const { takeAt } of [one, three]) expect(await takeAt(every(25, 1000))).toBe(1000);
    expect(await three.keys()).toHaveLength(1);
    expect(await three.bytes()).toBeLessThan((await one.bytes()) * 1.1);
    three.clock.now = START + 999 * 25;
    expect((await three.limiter.status("a")).map(({ count }) => count)).toEqual([40, 1000, 1000]);
    const spent = await commandsOf(() => three.limiter.tryAcquire("a"));
    expect(spent.hget).toBeLessThanOrEqual(4);
  });

  test("takes a cost of a million by the commands of one, and hardly more memory", async () => {
    const rule = slidingLog({ limit: 1_000_000_000, window: "1h" });
    const [light, heavy] = [keep(rule), keep(rule)];
    await light.takeAt(every(10, 500));
    await heavy.takeAt(every(10, 500), 1_000_000);
    expect(await heavy.bytes()).toBeLessThan((await light.bytes()) * 3);
    light.clock.now = heavy.clock.now = START + 5000;
    const [one, million] = [
      await commandsOf(() => light.limiter.tryAcquire("a")),
      await commandsOf(() => heavy.limiter.tryAcquire("a", 1_000_000)),
    ];
    expect(million.hset).toBe(one.hset);
    expect(million.hget - one.hget).toBeLessThanOrEqual(1);
  });

  test("of a key at its limit is read at two places and written at one, and by a refusal read at one", async () => {
    const { takeAt, clock, limiter } = keep(slidingLog({ limit: 1000, window: "1h" }));
    await takeAt(every(3600, 1000));
    clock.now = START + 3_600_000 - 1;
    expect(await commandsOf(() => limiter.tryAcquire("a"))).toEqual({ hget: 1 });
    let most = 0;
    for (let n = 0; n < 100; n++) {
      clock.now = START + 3_600_000 + n * 3600;
      const {
        hget,
        hset,
        hdel = 0,
        pexpire = 0,
        ...others
      } = await commandsOf(() => limiter.tryAcquire("a"));
      expect([hget <= 3, hset, hdel <= 1, others]).toEqual([true, 1, true, {}]);
      most += hget + hset + hdel + pexpire;
    }
    expect(most).toBeLessThan(330); // three each, and what comes with a new chunk
  });

  test("keeps its counts when limits, windows and the order of rules change", async () => {
    const minute = (limit: number) => slidingLog({ name: "burst", limit, window: "1m" });
    const hour = slidingLog({ name: "total", limit: 1000, window: "1h" });
    const { takeAt, changed, clock } = keep([minute(10), hour]);
    expect(await takeAt(every(5000, 10))).toBe(10);
    clock.now = START + 50_000;
    const statusOf = async (...rules: Rule[]) =>
      (await changed(rules).status("a")).map(({ count, remaining }) => [count, remaining]);
    expect(await statusOf(minute(12), hour)).toEqual([
      [10, 2],
      [10, 990],
    ]);
    expect(await statusOf(hour, minute(7))).toEqual([
      [10, 990],
      [10, 0],
    ]);
    expect(await statusOf(slidingLog({ name: "burst", limit: 10, window: "30s" }), hour)).toEqual([
      [5, 5],
      [10, 990],
    ]);
    const [{ allowed }, { retryAfterMs }] = [
      await changed([minute(11), hour]).tryAcquire("a"),
      await changed([minute(10), hour]).tryAcquire("a"),
    ];
    expect([allowed, retryAfterMs]).toEqual([true, 15_000]);
  });

  test("a rule counts a key in one log, whatever other parts the key has", async () => {
    const { limiter } = keep([
      slidingLog({ name: "user", by: ["user"], limit: 5, window: "1h" }),
      slidingLog({ name: "all", limit: 100, window: "1h" }),
    ]);
    await limiter.tryAcquire({ user: "1" }, 2);
    await limiter.tryAcquire({ user: "1", ip: "x" }, 2);
    expect((await limiter.peek({ user: "1", ip: "y" })).remaining).toBe(1);
    expect((await limiter.count({ user: "1" })).count).toBe(4);
  });

  test("counts what was settled before its first entry since a pause of hours, as memory does", async () => {
    const rule = slidingLog({ limit: 5, window: 1000 });
    const { clock, limiter } = keep(rule);
    const inMemory = createLimiter({ store: memoryStore({ clock: () => clock.now }), rules: rule });
    for (const each of [limiter, inMemory]) {
      clock.now = START - 5 * 3_600_000;
      await each.tryAcquire("a");
      clock.now = START + 415;
      const reservation = await each.reserve("a", 0);
      clock.now = START + 523;
      await each.tryAcquire("a");
      clock.now = START + 694;
      await reservation.settle(1);
      expect(await each.status("a")).toMatchObject([
        { count: 2, oldestAt: START + 415, newestAt: START + 523 },
      ]);
    }
  });

  test("with a lease holds and lets go by one command that reads and one that writes", async () => {
    const { limiter, clock, keys } = keep(
      rule({ algorithm: "slidingLog", limit: 100, window: "1h", lease: "1m" }),
    );
    await (await limiter.reserve("a", 5)).settle(3);
    clock.now += 1000;
    const once = { hget: 1, hset: 1 };
    let reservation = await limiter.reserve("a", 5);
    expect(await commandsOf(async () => (reservation = await limiter.reserve("a", 5)))).toEqual(once);
    clock.now += 1000;
    expect(await commandsOf(() => reservation.settle(3))).toEqual(once);
    expect(await keys()).toHaveLength(1);
    expect((await limiter.status("a"))[0].count).toBe(3 + 5 + 3);
  });

  test("counts on to the unit when all that ever passed is past 2^53", async () => {
    const limit = 2 ** 50 + 1;
    const { clock, limiter } = keep(slidingLog({ limit, window: 1000 }));
    const half = (limit - 1) / 2;
    for (let n = 0; n < 60; n++) {
      clock.now = START + n * 500;
      expect((await limiter.tryAcquire("a", half)).allowed).toBe(true);
      expect((await limiter.tryAcquire("a", 1)).allowed).toBe(n % 2 === 0);
      const remaining = n === 0 ? half : 0;
      expect((await limiter.peek("a")).remaining).toBe(remaining);
    }
  });
});

describe("cells", () => {
  test.each([
    ["60 cells", slidingCells({ limit: 1_000_000, window: 60_000 }), 62],
    ["7 weighted cells", slidingCells({ limit: 1_000_000, window: 7000, cells: 7, mode: "weighted" }), 9],
    ["two windows", slidingCounter({ limit: 1_000_000, window: 1000 }), 4],
  ])("%s have a field each and no more, however long", async (_, rule, most) => {
    const { takeAt, keys, clock, limiter } = keep(rule);
    for (let n = 0; n < 3; n++) {
      clock.now = START + n * rule.window * 2;
      await takeAt(every(rule.window / 150, 300, clock.now));
    }
    const [key] = await keys();
    expect(await redis.hlen(key)).toBeLessThanOrEqual(most);
    expect((await redis.hkeys(key)).every((field) => field.length <= 2)).toBe(true);
    const commands = await commandsOf(() => limiter.tryAcquire("a"));
    expect(commands.hdel).toBeUndefined();
  });
});
