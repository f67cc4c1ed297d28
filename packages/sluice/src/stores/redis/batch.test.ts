import { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { startRedis } from "../../../test/redisServer.js";
import { commandStats, resetStats } from "../../../test/redisStats.js";
import { useRedis } from "../../../test/useRedis.js";
import { SluiceError } from "../../errors.js";
import { createLimiter } from "../../limiter.js";
import { fixedWindow, slidingCells, slidingLog } from "../../rule.js";
import { redisStore, type ScriptRunner } from "./index.js";

const { redis } = useRedis();
beforeEach(async () => {
  await redis.flushall();
  await createLimiter({ store: redisStore(redis), rules: slidingLog({ limit: 1, window: 1 }) }).peek("load");
  await resetStats(redis);
});

/** Passes calls on, and tells how many keys each had. */
function watched(): { runner: ScriptRunner; keyCounts: number[] } {
  const keyCounts: number[] = [];
  const runner: ScriptRunner = {
    evalsha(sha, keyCount, ...rest) {
      keyCounts.push(keyCount);
      return redis.evalsha(sha, keyCount, ...rest);
    },
    eval: (script, keyCount, ...rest) => redis.eval(script, keyCount, ...rest),
  };
  return { runner, keyCounts };
}

const scriptCalls = async () => (await commandStats(redis)).evalsha?.calls ?? 0;

describe("calls of one tick", () => {
  test("become one script call, whatever they ask and of whichever limiter", async () => {
    const store = redisStore(redis);
    const a = createLimiter({ name: "a", store, rules: slidingLog({ limit: 5, window: "1m" }) });
    const b = createLimiter({ name: "b", store, rules: fixedWindow({ limit: 5, window: "1m" }) });
    const answers = await Promise.all([
      ...Array.from({ length: 50 }, (_, n) => a.tryAcquire(`user ${n}`)),
      ...Array.from({ length: 50 }, (_, n) => b.tryAcquire(`user ${n}`, 2)),
      a.peek("user 7"),
      b.status("user 7"),
      a.count("user 7"),
      b.reset("user 7"),
      b.peek("user 7", 5),
    ]);
    expect(await scriptCalls()).toBe(1);
    expect(answers.slice(0, 50)).toEqual(
      Array(50).fill(expect.objectContaining({ allowed: true, remaining: 4 })),
    );
    expect(answers.slice(50, 100)).toEqual(
      Array(50).fill(expect.objectContaining({ allowed: true, remaining: 3 })),
    );
    expect(answers.slice(100)).toEqual([
      expect.objectContaining({ allowed: true, remaining: 4 }),
      [expect.objectContaining({ count: 2 })],
      expect.objectContaining({ count: 1 }),
      undefined,
      expect.objectContaining({ allowed: true, remaining: 5 }),
    ]);
  });

  test("are decided in the order they were made", async () => {
    const limiter = createLimiter({
      store: redisStore(redis),
      rules: slidingLog({ limit: 700, window: "1h" }),
    });
    const decisions = await Promise.all(Array.from({ length: 1000 }, () => limiter.tryAcquire("a")));
    expect(decisions.map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 1000 }, (_, n) => Math.max(0, 699 - n)),
    );
    expect(decisions.findIndex(({ allowed }) => !allowed)).toBe(700);
  });

  test("may differ in cost, rule and outcome", async () => {
    const store = redisStore(redis);
    const log = createLimiter({ name: "log", store, rules: slidingLog({ limit: 10, window: "1h" }) });
    const cells = createLimiter({ name: "cells", store, rules: slidingCells({ limit: 10, window: "1h" }) });
    for (const limiter of [log, cells]) {
      const calls = [3, 70_000, 1, 1, 4, 2, 1, 1].map((cost) => limiter.tryAcquire("a", cost));
      const decisions = await Promise.all([...calls, limiter.peek("a", 2), limiter.tryAcquire("b", 10)]);
      expect(decisions.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
        [true, 7],
        [false, 7],
        [true, 6],
        [true, 5],
        [true, 1],
        [false, 1],
        [true, 0],
        [false, 0],
        [false, 0],
        [true, 0],
      ]);
      expect(decisions[1].retryAfterMs).toBe(Infinity);
    }
    expect(await scriptCalls()).toBe(2);
  });

  test("go out in batches of at most 250 keys", async () => {
    const { runner, keyCounts } = watched();
    const rules = [
      slidingLog({ limit: 5, window: "1m" }),
      slidingCells({ name: "day", limit: 5, window: "1d" }),
    ];
    const limiter = createLimiter({ store: redisStore(runner), rules });
    await Promise.all(Array.from({ length: 300 }, (_, n) => limiter.tryAcquire(`user ${n}`)));
    expect(keyCounts).toEqual([250, 250, 100]);
  });

  test("and of bounded length, however long the keys", async () => {
    const { runner, keyCounts } = watched();
    const limiter = createLimiter({
      store: redisStore(runner),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    await Promise.all(Array.from({ length: 60 }, (_, n) => limiter.tryAcquire(`${n}`.padEnd(10_000, "x"))));
    expect(Math.max(...keyCounts)).toBeLessThanOrEqual(20);
  });

  test("a full batch holds Redis for about a millisecond", async () => {
    const limiter = createLimiter({
      store: redisStore(redis),
      rules: slidingLog({ limit: 1000, window: "1m" }),
    });
    const keys = Array.from({ length: 250 }, (_, n) => `user ${n}`);
    const usecs: number[] = [];
    for (let batch = 0; batch < 30; batch++) {
      await resetStats(redis);
      await Promise.all(keys.map((key) => limiter.tryAcquire(key)));
      const { evalsha } = await commandStats(redis);
      expect(evalsha.calls).toBe(1);
      usecs.push(evalsha.usec);
    }
    // The quickest, since the machine may be busy with other things.
    expect(Math.min(...usecs)).toBeLessThan(2500);
  });
});

describe("group commit", () => {
  test("a lone call goes out before the tick is over", async () => {
    const { runner, keyCounts } = watched();
    const limiter = createLimiter({
      store: redisStore(runner),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    const decision = limiter.tryAcquire("a");
    const seen = await new Promise((resolve) => process.nextTick(() => resolve([...keyCounts])));
    expect(seen).toEqual([1]);
    await decision;
  });

  test("calls that come in while two batches are under way make the next one", async () => {
    const { runner, keyCounts } = watched();
    const limiter = createLimiter({
      store: redisStore(runner),
      rules: slidingLog({ limit: 500, window: "1m" }),
    });
    const calls = [];
    for (let n = 0; n < 20; n++) {
      calls.push(limiter.tryAcquire("a"));
      await Promise.resolve().then(() => {}); // another microtask, the same answer pending
    }
    const decisions = await Promise.all(calls);
    expect(decisions.map(({ remaining }) => remaining)).toEqual(
      Array.from({ length: 20 }, (_, n) => 499 - n),
    );
    expect(keyCounts.length).toBeLessThan(8);
    expect(keyCounts.reduce((sum, keys) => sum + keys)).toBe(20);
  });
});

describe("calls that fail", () => {
  const broken = new Error("connect ECONNREFUSED");

  test("reject with what broke as their cause, and the next one is asked anew", async () => {
    let isBroken = true;
    const runner: ScriptRunner = {
      evalsha: (...call) => (isBroken ? Promise.reject(broken) : redis.evalsha(...call)),
      eval: (...call) => redis.eval(...call),
    };
    const limiter = createLimiter({
      store: redisStore(runner),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    const calls = await Promise.allSettled([
      limiter.tryAcquire("a"),
      limiter.peek("b"),
      limiter.status("c"),
      limiter.count("d"),
      limiter.reset("e"),
    ]);
    for (const call of calls) {
      expect(call).toMatchObject({ status: "rejected", reason: { code: "STORE_FAILED", cause: broken } });
      expect((call as PromiseRejectedResult).reason).toBeInstanceOf(SluiceError);
    }
    isBroken = false;
    expect((await limiter.tryAcquire("a")).remaining).toBe(4);
  });

  test("so does a client that throws at once", async () => {
    const throwing = () => {
      throw broken;
    };
    const store = redisStore({ evalsha: throwing, eval: throwing });
    const limiter = createLimiter({ store, rules: slidingLog({ limit: 5, window: "1m" }) });
    for (let n = 0; n < 5; n++) {
      await expect(limiter.tryAcquire("a")).rejects.toMatchObject({ code: "STORE_FAILED", cause: broken });
    }
  });

  test("a server that is gone, by a client that does not queue, is told at once", async () => {
    const gone = await startRedis();
    const client = new Redis(gone.port, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
    client.on("error", () => {});
    await new Promise((resolve) => client.once("ready", resolve));
    const limiter = createLimiter({
      store: redisStore(client),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    await limiter.tryAcquire("a");
    await gone.stop();
    const started = performance.now();
    await expect(limiter.tryAcquire("a")).rejects.toMatchObject({ code: "STORE_FAILED" });
    await expect(limiter.tryAcquire("a")).rejects.toMatchObject({ code: "STORE_FAILED" });
    expect(performance.now() - started).toBeLessThan(1000);
    client.disconnect();
  });

  test("a server that hangs, by a client with a timeout, is told when that has passed", async () => {
    const hanging = await startRedis();
    const client = new Redis(hanging.port, { commandTimeout: 200 });
    const limiter = createLimiter({
      store: redisStore(client),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    await limiter.tryAcquire("a");
    hanging.process.kill("SIGSTOP");
    const started = performance.now();
    const calls = await Promise.allSettled(Array.from({ length: 600 }, () => limiter.tryAcquire("a")));
    for (const call of calls) {
      expect(call).toMatchObject({ status: "rejected", reason: { code: "STORE_FAILED" } });
    }
    expect(performance.now() - started).toBeLessThan(5000);
    hanging.process.kill("SIGCONT");
    expect((await limiter.peek("a")).limit).toBe(5);
    client.disconnect();
    await hanging.stop();
  });

  test("what is not Sluice's under one of its keys is told, not overwritten", async () => {
    const limiter = createLimiter({
      name: "api",
      store: redisStore(redis),
      rules: slidingLog({ limit: 5, window: "1m" }),
    });
    await redis.set("sluice:{a}/api/1m/log", "not a log");
    await expect(limiter.tryAcquire("a")).rejects.toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringContaining("WRONGTYPE"),
    });
    expect(await redis.get("sluice:{a}/api/1m/log")).toBe("not a log");
  });
});
