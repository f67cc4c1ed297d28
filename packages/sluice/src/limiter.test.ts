import { describe, expect, it, vi } from "vitest";
import type { Key } from "./key.js";
import { createLimiter, type LimiterOptions } from "./limiter.js";
import { fixedWindow, type RuleInput, rule, slidingLog } from "./rule.js";
import { memoryStore } from "./stores/memory.js";
import { remotely } from "./testing/remotely.js";

const onePerSecond = slidingLog({ limit: 1, window: "1s" });

describe("createLimiter", () => {
  it("needs rules alone", async () => {
    const limiter = createLimiter({ rules: onePerSecond });
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
  });

  it("takes rules as plain data, as YAML and JSON carry them", () => {
    const limiter = createLimiter({ rules: rule({ algorithm: "tokenBucket", limit: 1, window: "1s" }) });
    expect(limiter.rules).toMatchObject([{ algorithm: "tokenBucket", name: "1s", window: 1000 }]);
  });

  it("says what to do with plain data whose algorithm nothing has brought in", () => {
    const creating = () => createLimiter({ rules: { algorithm: "leakyBucket", limit: 1, window: "1s" } });
    expect(creating).toThrow("No leakyBucket was built here; pass rules that are plain data through");
  });

  it.each<[unknown, string, string]>([
    [undefined, "INVALID_OPTION", "createLimiter takes { rules, store?, name? }; got undefined."],
    [{ rules: [] }, "INVALID_RULE", "A limiter needs at least one rule; got none."],
    [{}, "INVALID_RULE", "A rule must be an object; got undefined."],
    [
      { rules: [onePerSecond, onePerSecond] },
      "INVALID_RULE",
      'Two rules are named "1s"; give each its own `name`.',
    ],
    [{ rules: onePerSecond, name: "" }, "INVALID_RULE", "A limiter's name must be 1 to 64"],
    [{ rules: onePerSecond, name: "a/b" }, "INVALID_RULE", 'got "a/b".'],
    [{ rules: onePerSecond, partition: ["org"] }, "INVALID_RULE", "A limiter's partition must be 1 to 64"],
    [{ rules: onePerSecond, maxWaiting: -1 }, "INVALID_OPTION", "maxWaiting must be a whole number"],
    [{ rules: onePerSecond, maxWaiting: Number.NaN }, "INVALID_OPTION", "got NaN."],
  ])("refuses %j", (options, code, message) => {
    const creating = () => createLimiter(options as LimiterOptions);
    expect(creating).toThrow(expect.objectContaining({ name: "SluiceError", code }));
    expect(creating).toThrow(message);
  });

  it("does not let two limiters without a name share counts unawares", () => {
    const store = memoryStore();
    createLimiter({ store, rules: onePerSecond });
    expect(() => createLimiter({ store, rules: onePerSecond })).toThrow(
      expect.objectContaining({ code: "NAME_TAKEN" }),
    );
    createLimiter({ store, rules: slidingLog({ limit: 1, window: "1m" }) });
    createLimiter({ store, rules: onePerSecond, name: "other" });
    createLimiter({ store: memoryStore(), rules: onePerSecond });
  });

  it("gives the place of a limiter without a name free when it is closed", async () => {
    const store = memoryStore();
    await createLimiter({ store, rules: onePerSecond }).close();
    expect((await createLimiter({ store, rules: onePerSecond }).tryAcquire("a")).allowed).toBe(true);
  });

  it("lets limiters of one name share counts, also after the limit was changed", async () => {
    const store = memoryStore({ clock: () => 5000 });
    const before = createLimiter({ store, name: "api", rules: slidingLog({ limit: 2, window: "1s" }) });
    await before.tryAcquire("a", 2);
    const after = createLimiter({ store, name: "api", rules: slidingLog({ limit: 3, window: "1s" }) });
    expect(await after.tryAcquire("a")).toMatchObject({ allowed: true, remaining: 0 });
    expect(await before.tryAcquire("a")).toMatchObject({ allowed: false, remaining: 0 });
  });

  it("freezes what it was given, so that a rule changed later changes nothing", () => {
    const rule = { algorithm: "slidingLog" as const, limit: 1, window: 1000 };
    const limiter = createLimiter({ rules: rule });
    rule.limit = 100;
    expect(limiter.tryAcquireSync("a").limit).toBe(1);
    expect(Object.isFrozen(limiter.rules[0])).toBe(true);
  });
});

describe("a decision", () => {
  const rules: RuleInput[] = [
    slidingLog({ name: "second", limit: 2, window: "1s" }),
    fixedWindow({ name: "minute", limit: 3, window: "1m" }),
  ];

  it("names the rule with the least left while all allow", async () => {
    const limiter = createLimiter({ rules, store: memoryStore({ clock: () => 60_000 }) });
    expect(await limiter.tryAcquire("a")).toMatchObject({
      allowed: true,
      rule: "second",
      limit: 2,
      remaining: 1,
    });
  });

  it("names the rule that denies longest once one denies", async () => {
    let now = 60_000;
    const limiter = createLimiter({ rules, store: memoryStore({ clock: () => now }) });
    await limiter.tryAcquire("a", 2);
    expect(await limiter.tryAcquire("a")).toMatchObject({
      allowed: false,
      rule: "second",
      retryAfterMs: 1000,
    });
    now += 1000;
    await limiter.tryAcquire("a");
    await limiter.tryAcquire("a", 0);
    expect(await limiter.tryAcquire("a", 2)).toMatchObject({
      allowed: false,
      rule: "minute",
      retryAfterMs: 59_000,
    });
  });

  it("shows each rule's part, in the order of the rules", async () => {
    const limiter = createLimiter({ rules, store: memoryStore({ clock: () => 60_500 }) });
    expect((await limiter.tryAcquire("a")).rules).toEqual([
      {
        rule: "second",
        allowed: true,
        limit: 2,
        remaining: 1,
        retryAfterMs: 0,
        resetAfterMs: 1000,
        at: 60_500,
      },
      {
        rule: "minute",
        allowed: true,
        limit: 3,
        remaining: 2,
        retryAfterMs: 0,
        resetAfterMs: 59_500,
        at: 60_500,
      },
    ]);
  });
});

describe("tryAcquireSync", () => {
  it("answers what tryAcquire answers", async () => {
    const store = memoryStore({ clock: () => 5000 });
    const limiter = createLimiter({ store, rules: slidingLog({ limit: 2, window: "1s" }) });
    expect(limiter.tryAcquireSync("a", 2)).toEqual(await limiter.tryAcquire("b", 2));
    expect(limiter.tryAcquireSync("a")).toEqual(await limiter.tryAcquire("b"));
  });

  it("throws NOT_SYNC on a remote store, charging nothing", async () => {
    const store = remotely(memoryStore());
    const decide = vi.spyOn(store, "decide");
    const limiter = createLimiter({ store, rules: onePerSecond });
    expect(() => limiter.tryAcquireSync("a")).toThrow(expect.objectContaining({ code: "NOT_SYNC" }));
    expect(decide).not.toHaveBeenCalled();
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
  });
});

describe("a bad cost or key", () => {
  it.each([Number.NaN, -1, 0.5, Infinity, -Infinity, 2 ** 53, "1", null, 1n, {}])(
    "cost %s reaches no store",
    async (cost) => {
      const store = memoryStore();
      const limiter = createLimiter({ store, rules: onePerSecond });
      const decide = vi.spyOn(store, "decide");
      const bad = cost as number;
      const refusal = {
        code: "INVALID_COST",
        message: expect.stringContaining("A cost must be a whole number"),
      };
      await expect(limiter.tryAcquire("a", bad)).rejects.toMatchObject(refusal);
      await expect(limiter.peek("a", bad)).rejects.toMatchObject(refusal);
      await expect(limiter.reserve("a", bad)).rejects.toMatchObject(refusal);
      await expect(limiter.acquire("a", { cost: bad })).rejects.toMatchObject(refusal);
      expect(() => limiter.tryAcquireSync("a", bad)).toThrow(expect.objectContaining(refusal));
      expect(decide).not.toHaveBeenCalled();
    },
  );

  it.each<[unknown, string]>([
    [null, "must be a non-empty string or a number; got undefined"],
    [7, "must be a non-empty string or a number; got undefined"],
    [{ user: "a" }, 'Limiter "default" is partitioned by "org"'],
    [{ user: "a", org: "" }, 'got "".'],
  ])("key %j is refused where the limiter is partitioned by a part it lacks", async (key, message) => {
    const limiter = createLimiter({ rules: onePerSecond, partition: "org" });
    const refusal = { code: "INVALID_KEY", message: expect.stringContaining(message) };
    await expect(limiter.tryAcquire(key as Key)).rejects.toMatchObject(refusal);
  });

  it("id is refused before anything is charged", async () => {
    const limiter = createLimiter({ rules: slidingLog({ limit: 1, window: "1s", layout: "zset" }) });
    for (const id of [7, null, "x".repeat(257)]) {
      const call = limiter.tryAcquire("a", 1, { id: id as string });
      await expect(call).rejects.toMatchObject({ code: "INVALID_OPTION" });
    }
    expect((await limiter.tryAcquire("a", 1, { id: "x".repeat(256) })).allowed).toBe(true);
  });

  it("that only a later rule refuses charges no earlier one", async () => {
    const limiter = createLimiter({
      rules: [
        slidingLog({ name: "all", limit: 1, window: "1s" }),
        { ...onePerSecond, name: "user", by: ["user"] },
      ],
    });
    await expect(limiter.tryAcquire("a")).rejects.toMatchObject({ code: "INVALID_KEY" });
    expect((await limiter.tryAcquire({ user: "a" })).allowed).toBe(true);
  });
});

describe("close", () => {
  it("refuses further calls, and closes the store that the limiter made", async () => {
    const limiter = createLimiter({ rules: onePerSecond });
    await limiter.close();
    for (const verb of ["tryAcquire", "acquire", "peek", "status", "count", "reset"] as const) {
      await expect(limiter[verb]("a")).rejects.toMatchObject({ code: "CLOSED" });
    }
    await expect(limiter.reserve("a", 1)).rejects.toMatchObject({ code: "CLOSED" });
    expect(() => limiter.tryAcquireSync("a")).toThrow(expect.objectContaining({ code: "CLOSED" }));
  });

  it("leaves alone a store that was given", async () => {
    const store = memoryStore();
    const close = vi.spyOn(store, "close");
    await createLimiter({ store, rules: onePerSecond }).close();
    expect(close).not.toHaveBeenCalled();
  });
});
