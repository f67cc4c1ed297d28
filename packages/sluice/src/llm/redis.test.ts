import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { commandStats, resetStats } from "../../test/redisStats.js";
import { useRedis } from "../../test/useRedis.js";
import { redisStore } from "../stores/redis/index.js";
import { createBudget, type Limit } from "./index.js";

const shared = useRedis();
const { redis } = shared;
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill();
});

async function processes(count: number): Promise<ChildProcess[]> {
  const caller = join(import.meta.dirname, "../../test/budgetCaller.mjs");
  const started = Array.from({ length: count }, () => fork(caller, [String(shared.server.port)]));
  children.push(...started);
  await Promise.all(started.map(answer));
  return started;
}

function answer(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once("message", resolve));
}

const LIMITS: readonly Limit[] = [
  { name: "tpm", unit: "tokens", limit: 2_000_000, window: "1m", by: ["org", "model"] },
  { name: "day", unit: "usd", limit: 500, window: "1d", by: ["user"] },
  { name: "parallel", unit: "concurrent", limit: 1000, lease: "2m", by: ["user"] },
];
const PRICES = { m: { input: 1, output: 2 } };
const SUBJECT = { user: "u", org: "o", model: "m", inputTokens: 100, outputTokens: 300 };

describe("in several processes", () => {
  it("50 parallel calls on a budget of 100 tokens never spend one over, whatever their answers' sizes", async () => {
    const callers = await processes(4);
    const [window, limit, most] = [400, 100, 30];
    const limits: Limit[] = [
      { name: "tokens", unit: "tokens", limit, window, by: ["user"] },
      { name: "parallel", unit: "concurrent", limit: 5, lease: "10s", by: ["user"] },
    ];
    const answers = callers.map(answer) as Promise<{ at: number; tokens: number }[]>[];
    callers.forEach((caller, n) => {
      caller.send({
        verb: "spend",
        name: "four",
        calls: n < 2 ? 13 : 12,
        most,
        limits,
      });
    });
    const calls = (await Promise.all(answers)).flat();
    expect(calls).toHaveLength(50);
    for (const { at } of calls) {
      const inside = calls.filter((other) => other.at <= at && at - other.at < window);
      const spent = inside.reduce((sum, { tokens }) => sum + tokens, 0);
      expect(spent).toBeLessThanOrEqual(limit);
    }
    const budget = createBudget({ name: "four", store: redisStore(redis), limits });
    expect((await budget.status({ user: "u" }))[1].count, "slots left behind").toBe(0);
  });

  it("2: the slot of a process that was killed is free when its lease ends, and not before", async () => {
    const [victim] = await processes(1);
    const limits: Limit[] = [{ name: "parallel", unit: "concurrent", limit: 1, lease: 700, by: ["user"] }];
    const name = randomUUID();
    const held = answer(victim);
    victim.send({ verb: "hold", name, limits });
    await held;
    const began = performance.now();
    victim.kill("SIGKILL");
    const budget = createBudget({ name, store: redisStore(redis), limits });
    expect((await budget.tryReserve({ user: "u" })).allowed).toBe(false);
    await budget.reserve({ user: "u" }, { timeoutMs: 5000 });
    expect(performance.now() - began).toBeGreaterThan(500);
  });

  it("2: tokens and dollars of a process that was killed are there again when its lease ends, and not before", async () => {
    const [victim] = await processes(1);
    const limits: Limit[] = [
      { name: "hour", unit: "tokens", limit: 1000, window: "1h", by: ["user"] },
      { name: "day", unit: "usd", limit: 1, window: "1d", by: ["user"] },
      { name: "cells", unit: "output-tokens", limit: 1000, window: "1h", algorithm: "slidingCells" },
      { name: "calls", unit: "requests", limit: 5, window: "1d", by: ["user"] },
      { name: "parallel", unit: "concurrent", limit: 1, by: ["user"] },
    ];
    let now = 1_700_000_000_000;
    const name = randomUUID();
    const held = answer(victim);
    victim.send({ verb: "hold", name, limits, now, subject: { tokens: 800, usd: 0.7, outputTokens: 600 } });
    await held;
    victim.kill("SIGKILL");
    const budget = createBudget({ name, store: redisStore(redis, { clock: () => now }), limits });
    const counts = async () => (await budget.status({ user: "u" })).map(({ count }) => count);
    expect(await counts()).toEqual([800, 0.7, 600, 1, 1]);
    now += 119_999;
    expect(await counts()).toEqual([800, 0.7, 600, 1, 1]);
    const call = { user: "u", tokens: 900, usd: 0.9, outputTokens: 900 };
    const { decision } = await budget.tryReserve(call);
    expect(decision.rules.map(({ retryAfterMs }) => retryAfterMs)).toEqual([1, 1, 1, 0, 1]);
    now += 1;
    expect(await counts()).toEqual([0, 0, 0, 0, 0]);
    const next = await budget.tryReserve(call);
    expect(next.allowed).toBe(true);
    await next.settle({ inputTokens: 10, outputTokens: 20, usd: 0.1 });
    now += 3_599_999;
    expect(await counts()).toEqual([30, 0.1, 20, 1, 0]);
  });

  it("a process that lives keeps what a long call has reserved", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    let now = 1_700_000_000_000;
    const limits: Limit[] = [
      { name: "hour", unit: "tokens", limit: 1000, window: "1h", by: ["user"] },
      { name: "parallel", unit: "concurrent", limit: 1, by: ["user"] },
    ];
    const budget = createBudget({
      name: randomUUID(),
      store: redisStore(redis, { clock: () => now }),
      limits,
    });
    const counts = async () => (await budget.status({ user: "u" })).map(({ count }) => count);
    const long = await budget.reserve({ user: "u", tokens: 800 });
    for (let minute = 0; minute < 10; minute++) {
      now += 60_000;
      vi.advanceTimersByTime(60_000);
      expect(await counts()).toEqual([800, 1]); // after the renewals, which went to Redis before it
    }
    await long.settle({ tokens: 300 });
    expect(await counts()).toEqual([300, 0]);
    vi.useRealTimers();
  });

  it("a 429 that one process met pauses the upstream for all", async () => {
    const name = randomUUID();
    const [one, other] = [redis, redis.duplicate()].map((client) =>
      createBudget({ name, store: redisStore(client), limits: LIMITS, prices: PRICES }),
    );
    await one.pause("api/m", 20_000);
    const { decision } = await other.tryReserve({ ...SUBJECT, upstream: "api/m" });
    expect(decision).toMatchObject({ allowed: false, rule: "upstream" });
    expect(decision.retryAfterMs).toBeGreaterThan(15_000);
    expect((await other.tryReserve({ ...SUBJECT, upstream: "api/n" })).allowed).toBe(true);
  });
});

describe("reserve and settle", () => {
  it("are two round trips, however many limits there are", async () => {
    const budget = createBudget({
      name: randomUUID(),
      store: redisStore(redis),
      limits: LIMITS,
      prices: PRICES,
    });
    await (await budget.reserve(SUBJECT)).settle({ inputTokens: 1, outputTokens: 1 });
    await resetStats(redis);
    await (await budget.reserve(SUBJECT)).settle({ inputTokens: 90, outputTokens: 30 });
    expect((await commandStats(redis)).evalsha.calls).toBe(2);
  });

  it("of many calls at once share their round trips", async () => {
    const budget = createBudget({
      name: randomUUID(),
      store: redisStore(redis),
      limits: LIMITS,
      prices: PRICES,
    });
    await resetStats(redis);
    const calls = Array.from({ length: 100 }, async (_, n) => {
      const reservation = await budget.tryReserve({ ...SUBJECT, user: `u${n}` });
      await reservation.settle({ inputTokens: 90, outputTokens: n });
    });
    await Promise.all(calls);
    expect((await commandStats(redis)).evalsha.calls).toBeLessThanOrEqual(8);
    expect((await budget.status(SUBJECT))[0].count).toBe(100 * 90 + (99 * 100) / 2);
  });

  it("of limits that count the same user by different units keep their counts apart", async () => {
    const limits: Limit[] = [
      { name: "tokens", unit: "tokens", limit: 1000, window: "1m", by: ["user"] },
      { name: "hour", unit: "tokens", limit: 9000, window: "1h", by: ["user"] },
      { name: "usd", unit: "usd", limit: 1, window: "1m", by: ["user"] },
      { name: "requests", unit: "requests", limit: 9, window: "1m", by: ["user"] },
    ];
    const budget = createBudget({ name: randomUUID(), store: redisStore(redis), limits, prices: PRICES });
    const reservation = await budget.reserve(SUBJECT);
    const counts = async () => (await budget.status(SUBJECT)).map(({ count }) => count);
    expect(await counts()).toEqual([400, 400, 0.0007, 1]);
    await reservation.settle({ inputTokens: 10, outputTokens: 20, cachedInputTokens: 5 });
    expect(await counts()).toEqual([25, 25, 0.00005, 1]);
    await vi.waitFor(async () => expect(await redis.keys("*tokens*")).not.toHaveLength(0));
  });
});
