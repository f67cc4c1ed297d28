import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { MessageChannel } from "node:worker_threads";
import { describe, expect, it, vi } from "vitest";
import { budgetOf, budgetsOnVirtualTime, parallel, tpm } from "../../test/budgets.js";
import { createBudget, type Limit } from "./index.js";

budgetsOnVirtualTime();

describe("a reservation", () => {
  it("takes all limits in one call, each by its own cost, and settles them in another", async () => {
    const { budget, used, decide, settle } = budgetOf([
      { name: "rpm", unit: "requests", limit: 10, window: "1m", by: ["user"] },
      tpm(1000),
      { name: "day", unit: "tokens", limit: 5000, window: "1d", by: ["user"] },
      { name: "in", unit: "input-tokens", limit: 1000, window: "1m", by: ["user"] },
      { name: "out", unit: "output-tokens", limit: 1000, window: "1m", by: ["user"] },
      { name: "usd", unit: "usd", limit: 0.01, window: "1d", by: ["user"] },
      parallel(2),
    ]);
    const r = await budget.reserve({ user: "u", model: "small", inputTokens: 100, outputTokens: 300 });
    expect(await used()).toEqual({ rpm: 1, tpm: 400, day: 400, in: 100, out: 300, usd: 0.0013, parallel: 1 });
    await r.settle({ inputTokens: 120, outputTokens: 80 });
    expect(await used()).toEqual({ rpm: 1, tpm: 200, day: 200, in: 120, out: 80, usd: 0.00044, parallel: 0 });
    expect([decide.mock.calls.length, settle.mock.calls.length]).toEqual([1, 1]);
  });

  it("settled above what was reserved leaves a debt, and says when it is paid", async () => {
    const { budget, used } = budgetOf([tpm(100)]);
    const r = await budget.reserve({ user: "u", tokens: 50 });
    await r.settle({ inputTokens: 100, outputTokens: 130 });
    expect(await used()).toEqual({ tpm: 230 });
    const denied = await budget.tryReserve({ user: "u", tokens: 1 });
    expect(denied.decision).toMatchObject({ allowed: false, rule: "tpm", retryAfterMs: 60_000 });
  });

  it("is settled once, at its own time: nothing is credited to a window that came later", async () => {
    const { budget, used } = budgetOf([tpm(100)]);
    const r = await budget.reserve({ user: "u", tokens: 80 });
    vi.setSystemTime(Date.now() + 60_000);
    await (await budget.reserve({ user: "u", tokens: 70 })).settle();
    await r.settle({ tokens: 10 });
    await r.settle({ tokens: 500 });
    await r.cancel();
    expect(await used()).toEqual({ tpm: 70 });
  });

  it("gives everything back when it is cancelled, or its scope is left", async () => {
    const { budget, used } = budgetOf([tpm(100), parallel(1)]);
    await (await budget.reserve({ user: "u", tokens: 80 })).cancel();
    {
      await using r = await budget.reserve({ user: "u", tokens: 80 });
      expect(r.allowed).toBe(true);
    }
    expect(await used()).toEqual({ tpm: 0, parallel: 0 });
  });

  it("counts by the parts that a limit names, and everyone together without any", async () => {
    const all: Limit = { name: "all", unit: "requests", limit: 3, window: "1m" };
    const { budget } = budgetOf([all, { ...all, name: "each", limit: 2, by: ["user", "model"] }]);
    const ask = async (user: string, model: string) => (await budget.tryReserve({ user, model })).decision;
    expect(await ask("u", "small")).toMatchObject({ allowed: true });
    expect(await ask("u", "small")).toMatchObject({ allowed: true });
    expect(await ask("u", "small")).toMatchObject({ allowed: false, rule: "each" });
    expect(await ask("u", "large")).toMatchObject({ allowed: true });
    expect(await ask("v", "large")).toMatchObject({ allowed: false, rule: "all" });
    await expect(budget.reserve({ model: "small" })).rejects.toMatchObject({ code: "INVALID_KEY" });
  });

  it("keeps dollars as whole numbers: a million small costs add up exactly", async () => {
    const usd: Limit = { name: "usd", unit: "usd", limit: 1, window: "1d", by: ["user"] };
    const { budget, used } = budgetOf([usd]);
    for (let n = 0; n < 1000; n++) {
      const r = await budget.reserve({ user: "u", model: "small", inputTokens: 1000, outputTokens: 0 });
      await r.settle({ inputTokens: 100, outputTokens: 0 });
    }
    expect(await used()).toEqual({ usd: 0.1 });
    await expect(budget.reserve({ user: "u", model: "huge", tokens: 1 })).rejects.toMatchObject({
      code: "UNKNOWN_MODEL",
      message: expect.stringContaining('prices has no model "huge"; add it (it has small)'),
    });
  });
});

describe("what a call has reserved", () => {
  const day: Limit = { name: "day", unit: "usd", limit: 1, window: "1d", by: ["user"] };
  const hour: Limit = { name: "hour", unit: "tokens", limit: 1000, window: "1h", by: ["user"] };
  const daily: Limit = { name: "calls", unit: "requests", limit: 9, window: "1d", by: ["user"] };
  const call = { user: "u", model: "small", inputTokens: 100, outputTokens: 100 };

  it("is given back when its process died: at the end of the lease, or of a shorter window", async () => {
    const { budget, used } = budgetOf([tpm(1000), hour, day, daily, parallel(1)]);
    await budget.reserve(call);
    const all = { tpm: 200, hour: 200, day: 0.0005, calls: 1, parallel: 1 };
    expect(await used()).toEqual(all);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await used()).toEqual({ ...all, tpm: 0 });
    vi.setSystemTime(Date.now() + 59_999);
    expect(await used()).toEqual({ ...all, tpm: 0 });
    const denied = await budget.tryReserve({ ...call, outputTokens: 900 });
    expect(denied.decision.rules.map(({ retryAfterMs }) => retryAfterMs)).toEqual([0, 1, 0, 0, 1]);
    vi.setSystemTime(Date.now() + 1);
    expect(await used()).toEqual({ tpm: 0, hour: 0, day: 0, calls: 0, parallel: 0 });
  });

  it("stays held while the process lives, and costs nothing until a third of the lease has passed", async () => {
    const { budget, used, settle } = budgetOf([hour, day, parallel(1)]);
    const r = await budget.reserve(call);
    await vi.advanceTimersByTimeAsync(39_999);
    expect(settle).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(600_000);
    expect(settle).toHaveBeenCalledTimes(15);
    expect(await used()).toEqual({ hour: 200, day: 0.0005, parallel: 1 });
    await r.settle({ inputTokens: 100, outputTokens: 50 });
    expect(await used()).toEqual({ hour: 150, day: 0.0003, parallel: 0 });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("leaves its window though it is renewed, and that is no loss", async () => {
    const { budget, used } = budgetOf([{ ...hour, window: "5m" }, parallel(1)]);
    const r = await budget.reserve(call);
    await vi.advanceTimersByTimeAsync(299_999);
    expect(await used()).toEqual({ hour: 200, parallel: 1 });
    await vi.advanceTimersByTimeAsync(1);
    expect(await used()).toEqual({ hour: 0, parallel: 1 });
    expect(await r.renew()).toBe(true);
  });

  it("is charged as it was, at its own time, when it is settled after its lease has ended", async () => {
    const { budget, used } = budgetOf([hour, day, parallel(1)]);
    const [late, never] = [await budget.reserve(call), await budget.tryReserve(call)];
    expect([late.allowed, never.allowed]).toEqual([true, false]);
    vi.setSystemTime(Date.now() + 200_000);
    expect(await late.renew()).toBe(false);
    expect(await never.renew()).toBe(false);
    const next = await budget.reserve({ ...call, inputTokens: 900 });
    await late.settle({ inputTokens: 100, outputTokens: 50 });
    expect(await used()).toEqual({ hour: 1150, day: 0.0016, parallel: 1 });
    await next.cancel();
    expect(await next.renew()).toBe(false);
    vi.setSystemTime(Date.now() + 3_400_000 - 1);
    expect(await used()).toEqual({ hour: 150, day: 0.0003, parallel: 0 });
    vi.setSystemTime(Date.now() + 1);
    expect(await used()).toEqual({ hour: 0, day: 0.0003, parallel: 0 });
  });

  it("has the lease that its limit or the budget tells", async () => {
    const { budget, used } = budgetOf([hour, { ...hour, name: "long", lease: "10m" }], { lease: "30s" });
    await budget.reserve(call);
    vi.setSystemTime(Date.now() + 30_000);
    expect(await used()).toEqual({ hour: 0, long: 200 });
    vi.setSystemTime(Date.now() + 570_000);
    expect(await used()).toEqual({ hour: 0, long: 0 });
  });

  it("is renewed once more by a store that was out", async () => {
    const { budget, used, settle } = budgetOf([hour]);
    await budget.reserve(call);
    settle.mockImplementationOnce(() => Promise.reject(new Error("out")));
    await vi.advanceTimersByTimeAsync(150_000);
    expect(await used()).toEqual({ hour: 200 });
  });

  it("is let go when nobody can settle it any more: it was dropped without a word", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const { budget, settle } = budgetOf([hour]);
    await (async () => void (await budget.reserve(call)))();
    const kept = await budget.reserve({ ...call, user: "v" });
    const { port1, port2 } = new MessageChannel();
    await new Promise((resolve) => {
      port1.once("message", resolve); // a turn of the event loop, which no virtual time can give
      port2.postMessage("");
    });
    port1.close();
    collectGarbage();
    await vi.advanceTimersByTimeAsync(600_000);
    const renewed = settle.mock.calls.flatMap(([settlements]) => settlements.map(({ key }) => key));
    expect(new Set(renewed)).toEqual(new Set(["user=v"]));
    await kept.cancel();
  });
});

describe("a paused upstream", () => {
  it("lets nobody through until its time, and others pass", async () => {
    const { budget, used } = budgetOf([tpm(100)]);
    await budget.pause("api/small", 5000);
    await budget.pause("api/small", 3000);
    const call = { user: "u", tokens: 10, upstream: "api/small" };
    const denied = await budget.tryReserve(call);
    expect(denied.decision).toMatchObject({ allowed: false, rule: "upstream", retryAfterMs: 5000 });
    expect(await used()).toEqual({ tpm: 0 });
    expect((await budget.tryReserve({ ...call, upstream: "api/large" })).allowed).toBe(true);
    const waiting = budget.reserve(call);
    await vi.advanceTimersByTimeAsync(4999);
    expect(await used()).toEqual({ tpm: 10 });
    await vi.advanceTimersByTimeAsync(1);
    expect((await waiting).allowed).toBe(true);
    expect((await budget.tryReserve(call)).allowed).toBe(true);
  });
});

describe("a budget refuses", () => {
  it.each([
    [[], "at least one limit"],
    [[tpm(1), tpm(2)], "Two limits have one name"],
    [[{ ...tpm(1), unit: "words" }], "unit must be one of"],
    [[{ name: "a", unit: "concurrent", limit: 1, window: "1m" }], "has a lease and no window"],
    [[{ name: "a", unit: "tokens", limit: 1, lease: "1m" }], "needs a window"],
    [[{ ...tpm(0) }], "limit must be a whole number"],
    [[{ ...tpm(1), unit: "usd", limit: 0.0000001 }], "limit must be a whole number"],
  ])("the limits %j", (limits, message) => {
    expect(() => createBudget({ limits: limits as Limit[] })).toThrow(message);
  });

  it("a lease that is no time", () => {
    expect(() => createBudget({ limits: [tpm(1)], lease: "soon" as "1s" })).toThrow(
      "A budget's lease must be",
    );
  });

  it.each([
    [{ tokens: 1.5 }, "INVALID_COST"],
    [{ tokens: Number.NaN }, "INVALID_COST"],
    [{ outputTokens: -1 }, "INVALID_COST"],
    [{ usd: -1 }, "INVALID_COST"],
  ])("the subject %j", async (subject, code) => {
    const { budget, decide } = budgetOf([tpm(100)]);
    await expect(budget.tryReserve({ user: "u", ...subject })).rejects.toMatchObject({ code });
    expect(decide).not.toHaveBeenCalled();
  });
});
