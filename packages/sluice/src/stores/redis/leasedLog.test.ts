// Logs with a lease that are large enough to have chunks: the conformance suite's traces have few of them.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import { rule } from "../../rule.js";
import { Digits } from "../../testing/scenario.js";
import { Trace } from "../../testing/trace.js";
import { inWorld, START } from "../../testing/world.js";
import { memoryStore } from "../memory.js";
import { redisStore } from "./index.js";

const { redis } = useRedis();
const [MINUTE, HOUR] = [60_000, 3_600_000];

describe("a log with a lease", () => {
  /** A limiter by a clock of its own, and those over the same counts that hold for longer or shorter. */
  function leased(limit = 100) {
    const clock = { now: START };
    const store = redisStore(redis, { prefix: `${randomUUID()}:`, clock: () => clock.now });
    const limiterOf = (lease: number) =>
      createLimiter({
        name: "leased",
        store,
        rules: rule({ algorithm: "slidingLog", limit, window: HOUR, lease }),
      });
    return { clock, limiterOf, limiter: limiterOf(10 * MINUTE) };
  }
  const countOf = async (limiter: Limiter) => (await limiter.status("a"))[0].count;

  test("holds what came after the clock stepped back no longer than that", async () => {
    const { clock, limiter } = leased();
    clock.now = START + MINUTE;
    await limiter.reserve("a", 5);
    clock.now = START;
    await limiter.reserve("a", 2);
    clock.now = START + 10 * MINUTE;
    expect(await countOf(limiter)).toBe(5);
    clock.now += MINUTE;
    expect(await countOf(limiter)).toBe(0);
  });

  test("holds for as long as the lease was when it was taken", async () => {
    const { clock, limiter, limiterOf } = leased();
    await limiter.reserve("a", 5);
    await limiterOf(MINUTE).reserve("a", 2);
    clock.now = START + MINUTE;
    expect(await countOf(limiter)).toBe(5);
    await limiterOf(20 * MINUTE).reserve("a", 1);
    clock.now = START + 10 * MINUTE;
    expect(await countOf(limiter)).toBe(1);
  });

  test("goes on where the one entry of a new tail outgrows its width in its own millisecond", async () => {
    const { clock, limiter } = leased(100_000);
    for (let n = 1; n <= 29; n++) {
      clock.now = START + n;
      await (await limiter.reserve("a", 1)).settle(1);
    }
    await (await limiter.reserve("a", 1)).settle(65_535);
    expect(await countOf(limiter)).toBe(29 + 65_535);
    clock.now = START + HOUR + 28;
    expect(await countOf(limiter)).toBe(1 + 65_535);
    clock.now++;
    expect(await countOf(limiter)).toBe(0);
  });

  test("is taken from, looked at and held in one tick, each call on its own terms", async () => {
    const { limiter } = leased();
    const [taken, held, peeked, other, [status]] = await Promise.all([
      limiter.tryAcquire("a", 3),
      limiter.reserve("a", 5),
      limiter.peek("a", 100),
      limiter.tryAcquire("a", 3),
      limiter.status("a"),
    ]);
    expect([taken, held.decision, peeked, other].map(({ remaining }) => remaining)).toEqual([97, 92, 92, 89]);
    expect(status.count).toBe(11);
    await Promise.all([held.settle(1), limiter.tryAcquire("a", 2)]);
    expect(await countOf(limiter)).toBe(9);
  });

  test.concurrent.each([
    { limit: 200, window: HOUR },
    { limit: 1_000_000, window: 24 * HOUR },
  ])("answers as memory does where calls are settled one after the other: %j", async ({ limit, window }) => {
    const step = fc.tuple(fc.nat(), fc.nat(), fc.nat());
    const steps = fc.array(step, { minLength: 150, maxLength: 300, size: "max" });
    const property = fc.asyncProperty(steps, async (steps) => {
      const clock = { now: START };
      const now = () => clock.now;
      const stores = [
        memoryStore({ clock: now }),
        redisStore(redis, { prefix: `${randomUUID()}:`, clock: now }),
      ];
      const rules = rule({ algorithm: "slidingLog", limit, window, lease: 10 * MINUTE });
      const limiters = stores.map((store) => createLimiter({ name: "calls", store, rules }));
      for (const [gap, cost, settled] of steps) {
        const digits = new Digits(gap);
        const isLong = digits.below(40) === 39;
        clock.now += isLong ? 2 ** 24 - digits.below(2) : digits.of([0, 1, 20, digits.below(window / 100)]);
        const most = new Digits(cost).of([1, 1, 3, 2 ** 16 - 1, 2 ** 16, limit / 2]);
        const made = await Promise.all(
          limiters.map((limiter) => limiter.reserve("a", Math.min(most, limit))),
        );
        expect(made[1].decision).toEqual(made[0].decision);
        const actual = new Digits(settled).of([most, 1, 1, 2, 0, 2 ** 16]);
        clock.now += Math.max(0, new Digits(settled).below(40) - 20);
        await Promise.all(made.map((reservation) => reservation.settle(actual)));
        const [memory, other] = await Promise.all(limiters.map((limiter) => limiter.peek("a", limit)));
        expect(other).toEqual(memory);
      }
    });
    await fc.assert(property, { numRuns: 12, seed: 20_261_115, unbiased: true, endOnFailure: true });
  });

  test.concurrent.each([
    // A chunk is full, or ends with an entry that is too late or too costly for its width.
    { limit: 300, window: "1m", lease: "50s" },
    { limit: 300, window: "1h", lease: "1s" },
    { limit: 100_000, window: "1h", lease: "59m" },
    { limit: 100_000, window: "1d", lease: "5h" },
    { limit: 1_000_000, window: "30d", lease: "6h" },
    { limit: 40, window: "30d", lease: "29d" },
  ] as const)("answers as the naive model does: %j", async (options) => {
    const rules = [rule({ algorithm: "slidingLog", ...options })];
    const createStore = ({ clock }: { clock: () => number }) =>
      redisStore(redis, { prefix: `${randomUUID()}:`, clock });
    const codes = fc.array(fc.nat(), { minLength: 300, maxLength: 600, size: "max" });
    const property = fc.asyncProperty(codes, (codes) =>
      inWorld({ createStore }, (world) =>
        new Trace(world, { rules, keys: ["a"], startAt: START }).play(codes),
      ),
    );
    await fc.assert(property, { numRuns: 6, seed: 20_261_115, unbiased: true, endOnFailure: true });
  });
});
