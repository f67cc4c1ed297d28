import { describe, expect, it } from "vitest";
import { createLimiter } from "./limiter.js";
import { slidingCells, slidingLog, tokenBucket } from "./rule.js";
import { memoryStore } from "./stores/memory.js";

const onePerSecond = slidingLog({ limit: 1, window: "1s" });

describe("count", () => {
  it("tells what was counted in a period, both ends included", async () => {
    let now = 60_000;
    const limiter = createLimiter({
      rules: slidingLog({ limit: 10, window: "1s" }),
      store: memoryStore({ clock: () => now }),
    });
    for (const at of [60_000, 60_100, 60_100, 60_200]) {
      now = at;
      await limiter.tryAcquire("a");
    }
    expect(await limiter.count("a", { from: 60_000, to: 60_100 })).toEqual({
      count: 3,
      from: 60_000,
      to: 60_100,
      resolutionMs: 1,
    });
    expect((await limiter.count("a")).count).toBe(4);
    expect((await limiter.count("a", { from: 60_101, to: 60_199 })).count).toBe(0);
  });

  it("is told by the rule that reaches back furthest", async () => {
    const limiter = createLimiter({
      rules: [
        slidingLog({ name: "log", limit: 10, window: "1s" }),
        slidingCells({ name: "cells", limit: 10, window: "1m" }),
        tokenBucket({ name: "bucket", limit: 10, window: "1d" }),
      ],
      store: memoryStore({ clock: () => 600_000 }),
    });
    expect(await limiter.count("a")).toEqual({ count: 0, from: 540_000, to: 600_000, resolutionMs: 1000 });
  });

  it("of a period before a shorter window is told by the longer one, and of one before all of them is empty", async () => {
    let now = 600_000;
    const limiter = createLimiter({
      rules: [
        slidingLog({ name: "second", limit: 10, window: "1s" }),
        slidingLog({ name: "minute", limit: 10, window: "1m" }),
      ],
      store: memoryStore({ clock: () => now }),
    });
    await limiter.tryAcquire("a");
    now += 30_000;
    expect(await limiter.count("a", { from: 599_000, to: 601_000 })).toMatchObject({
      count: 1,
      from: 599_000,
      to: 601_000,
    });
    const before = await limiter.count("a", { from: 1000, to: 2000 });
    expect(before).toMatchObject({ count: 0, from: 570_001, to: 2000 });
  });

  it("is NOT_COUNTED where there are only buckets", async () => {
    const limiter = createLimiter({ rules: tokenBucket({ limit: 1, window: "1s" }) });
    await expect(limiter.count("a")).rejects.toMatchObject({ code: "NOT_COUNTED" });
  });

  it.each([{ from: -1 }, { from: 0.5 }, { to: Number.NaN }, { from: 10, to: 9 }])(
    "refuses %j",
    async (period) => {
      const limiter = createLimiter({ rules: onePerSecond });
      await expect(limiter.count("a", period)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    },
  );
});

describe("entries", () => {
  it.each([slidingLog({ limit: 1, window: "1s", layout: "zset" }), onePerSecond])(
    "are NOT_COUNTED where no request is kept by name: %o in memory",
    async (rules) => {
      await expect(createLimiter({ rules }).entries("a")).rejects.toMatchObject({ code: "NOT_COUNTED" });
    },
  );
});
