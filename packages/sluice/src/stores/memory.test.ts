import { describe, expect, it, vi } from "vitest";
import { slidingLog as logArithmetic } from "../algorithms/slidingLog.js";
import { createLimiter } from "../limiter.js";
import { capacity, leakyBucket, slidingCells, slidingLog } from "../rule.js";
import { conformance } from "../testing/index.js";
import { type MemoryStoreOptions, memoryStore } from "./memory.js";

conformance({ name: "memoryStore", describe, it, createStore: memoryStore, decisions: 1_000_000 });

/** Ten per second for each of at most `maxKeys` keys, on time that stands still until it is set. */
function bounded(maxKeys: number, rules = slidingLog({ limit: 10, window: 1000 })) {
  const clock = { now: 1_700_000_000_000 };
  const store = memoryStore({ maxKeys, clock: () => clock.now });
  const limiter = createLimiter({ rules, store });
  const take = (key: string, cost = 1) => limiter.tryAcquireSync(key, cost);
  const used = async (key: string) => (await limiter.status(key))[0].count;
  return { clock, limiter, take, used };
}

const names = (prefix: string, n: number) => Array.from({ length: n }, (_, i) => `${prefix} ${i}`);

describe("at its cap the memory store", () => {
  it("lets a flood of one-hit keys evict itself, and resets no key that is near its limit", async () => {
    const { take, used } = bounded(1000);
    const regulars = names("regular", 500);
    for (const key of regulars) take(key, 9);
    for (const key of names("flood", 100_000)) take(key);
    for (const key of regulars) expect(await used(key)).toBe(9);
  });

  it("resets no other client for one that cycles through keys of its own", async () => {
    for (const rule of [
      slidingCells({ limit: 10, window: 1000 }),
      leakyBucket({ limit: 10, window: 1000, burst: 10 }),
    ]) {
      const { take } = bounded(100, rule);
      take("victim", capacity(rule));
      for (const key of names("cycled", 5000)) {
        take(key, 2);
        expect(take("victim").allowed).toBe(false);
      }
    }
  });

  it("drops an expired key before live ones, wherever it stands", async () => {
    const keys = names("key", 12);
    for (const expired of keys) {
      const { clock, take, used } = bounded(12);
      for (const key of keys) take(key);
      clock.now += 600;
      const live = keys.filter((key) => key !== expired);
      for (const key of live) take(key);
      clock.now += 400;
      take("new");
      for (const key of [...live, "new"]) expect(await used(key)).toBe(1);
    }
  });

  it("still admits and counts a new key when all others are at their limit", async () => {
    const { take, used } = bounded(10);
    for (const key of names("full", 10)) take(key, 10);
    expect(take("new").allowed).toBe(true);
    expect(await used("new")).toBe(1);
  });

  it("keeps one key when told to", async () => {
    const { take, used } = bounded(1);
    for (const key of names("key", 5)) {
      take(key, 3);
      expect(await used(key)).toBe(3);
    }
  });
});

describe("the memory store", () => {
  it("keeps nothing for keys that were only asked about, denied or reset", async () => {
    const { limiter, take, used } = bounded(1);
    take("kept");
    for (const key of names("asked", 100)) {
      await limiter.peek(key);
      await limiter.status(key);
      await limiter.count(key);
      await limiter.reset(key);
      take(key, 11);
      take(key, 0);
    }
    expect(await used("kept")).toBe(1);
  });

  it("forgets expired keys as new ones come, a few at a time and without ever stopping to sweep", () => {
    const { clock, take } = bounded(1_000_000);
    const looked = vi.spyOn(logArithmetic, "expiresAt");
    const forgotten = vi.spyOn(logArithmetic, "clear");
    for (const key of names("old", 10_000)) take(key);
    clock.now += 1000;
    let most = 0;
    for (const key of names("new", 10_000)) {
      looked.mockClear();
      take(key);
      most = Math.max(most, looked.mock.calls.length);
    }
    vi.restoreAllMocks();
    expect(forgotten.mock.calls.length).toBeGreaterThanOrEqual(9_000);
    expect(most).toBeLessThanOrEqual(4);
  });

  it("looks at a bounded number of keys to evict one, however many there are", () => {
    const { take } = bounded(10_000);
    for (const key of names("first", 10_000)) take(key);
    const looked = vi.spyOn(logArithmetic, "expiresAt");
    let most = 0;
    for (const key of names("more", 1000)) {
      looked.mockClear();
      take(key);
      most = Math.max(most, looked.mock.calls.length);
    }
    vi.restoreAllMocks();
    expect(most).toBeLessThanOrEqual(32);
  });

  it("starts no timer, so a process can end when its work is done", () => {
    const timers = () => process.getActiveResourcesInfo().filter((name) => name !== "PipeWrap").length;
    const before = timers();
    const limiter = createLimiter({ rules: slidingLog({ limit: 10, window: 10 }) });
    for (const key of names("key", 1000)) limiter.tryAcquireSync(key);
    expect(timers()).toBe(before);
  });

  it("tells time without a clock of its own to be set: it goes on, by whole milliseconds, near the system's", () => {
    const limiter = createLimiter({ rules: slidingLog({ limit: 10, window: 1000 }) });
    const at = () => limiter.tryAcquireSync("a").rules[0].at;
    const first = at();
    expect(Number.isInteger(first)).toBe(true);
    expect(Math.abs(first - Date.now())).toBeLessThan(60_000);
    expect(at()).toBeGreaterThanOrEqual(first);
  });

  it("gives each of two stores its own counts", () => {
    const [one, other] = [bounded(10), bounded(10)];
    one.take("a", 10);
    expect(other.take("a", 10).allowed).toBe(true);
  });

  it.each([
    [{ maxKeys: 0 }, "maxKeys must be a whole number from 1 to 10000000; got 0."],
    [{ maxKeys: 1.5 }, "got 1.5."],
    [{ maxKeys: Number.NaN }, "got NaN."],
    [{ maxKeys: 10_000_001 }, "got 10000001."],
    [
      { clock: 5 },
      "clock must be a function that returns milliseconds since the epoch, from 0 to 2^53 - 1; got 5.",
    ],
  ])("refuses the options %j", (options, message) => {
    const creating = () => memoryStore(options as MemoryStoreOptions);
    expect(creating).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    expect(creating).toThrow(message);
  });

  it.each([Number.NaN, -1, Infinity, 2 ** 53, undefined])(
    "refuses a clock that tells %s for a time",
    (time) => {
      const store = memoryStore({ clock: () => time as number });
      const limiter = createLimiter({ store, rules: slidingCells({ limit: 10, window: 1000 }) });
      expect(() => limiter.tryAcquireSync("a")).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
      expect(() => limiter.tryAcquireSync("a")).toThrow(
        "clock must be a function that returns milliseconds since the epoch",
      );
    },
  );

  it("cuts off the fractions of a clock that has them", () => {
    const clock = { now: 1000.9 };
    const store = memoryStore({ clock: () => clock.now });
    const limiter = createLimiter({ store, rules: slidingLog({ limit: 1, window: 10 }) });
    expect(limiter.tryAcquireSync("a").rules[0].at).toBe(1000);
    clock.now = 1009.99;
    expect(limiter.tryAcquireSync("a")).toMatchObject({ allowed: false, retryAfterMs: 1 });
    clock.now = 1010.01;
    expect(limiter.tryAcquireSync("a").allowed).toBe(true);
  });
});
