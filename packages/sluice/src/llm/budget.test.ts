import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { remotely } from "../testing/remotely.js";
import { type BudgetOptions, createBudget, type Limit } from "./index.js";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_700_000_000_000 });
});
afterEach(() => {
  expect(vi.getTimerCount(), "timers left behind").toBe(0);
  vi.useRealTimers();
});

const PRICES = { small: { input: 1, output: 4, cachedInput: 0.1 } };
const tpm = (limit: number): Limit => ({ name: "tpm", unit: "tokens", limit, window: "1m", by: ["user"] });
const parallel = (limit: number): Limit => ({
  name: "parallel",
  unit: "concurrent",
  limit,
  lease: "2m",
  by: ["user"],
});

function budgetOf(limits: readonly Limit[], options: Partial<BudgetOptions> = {}) {
  const store: Store = options.store ?? memoryStore({ clock: Date.now });
  const decide = vi.spyOn(store, "decide");
  const settle = vi.spyOn(store, "settle");
  const budget = createBudget({ store, limits, prices: PRICES, ...options });
  const used = async (subject = {}) => {
    const held = await budget.status({ user: "u", ...subject });
    return Object.fromEntries(held.map(({ rule, count }) => [rule, count]));
  };
  return { budget, store, used, decide, settle };
}

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

  it("of a process that died keeps its tokens for the window and its slot for the lease", async () => {
    const { budget, used } = budgetOf([tpm(100), parallel(1)]);
    await budget.reserve({ user: "u", tokens: 80 });
    vi.setSystemTime(Date.now() + 119_999);
    expect(await used()).toEqual({ tpm: 0, parallel: 1 });
    vi.setSystemTime(Date.now() + 1);
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

  it("is renewed while its call goes on, and costs nothing until a third of the lease has passed", async () => {
    const { budget, used, settle } = budgetOf([parallel(1)]);
    const r = await budget.reserve({ user: "u" });
    for (let n = 0; n < 30; n++) {
      vi.advanceTimersByTime(10_000);
      await r.goesOn();
    }
    expect(await used()).toEqual({ parallel: 1 });
    expect(settle).toHaveBeenCalledTimes(7);
    await r.settle();
    expect(await used()).toEqual({ parallel: 0 });
  });
});

describe("what goes wrong elsewhere", () => {
  it("1: calls at once check and charge in one step, so they never spend more than the limit", async () => {
    const { budget, used } = budgetOf([tpm(100)], { store: remotely(memoryStore({ clock: Date.now })) });
    const calls = await Promise.all(
      Array.from({ length: 50 }, () => budget.tryReserve({ user: "u", tokens: 30 })),
    );
    const admitted = calls.filter(({ allowed }) => allowed);
    expect(admitted).toHaveLength(3);
    await Promise.all(admitted.map((r, n) => r.settle({ tokens: 10 * (n + 1) })));
    expect(await used()).toEqual({ tpm: 60 });
  });

  it("3: a refusal by one limit consumes none of the others", async () => {
    const { budget, used } = budgetOf([
      { name: "rpm", unit: "requests", limit: 10, window: "1m", by: ["user"] },
      tpm(100),
      parallel(1),
    ]);
    await budget.reserve({ user: "u", tokens: 60 });
    const before = await used();
    for (let n = 0; n < 20; n++) {
      expect((await budget.tryReserve({ user: "u", tokens: 60 })).allowed).toBe(false);
    }
    expect(await used()).toEqual(before);
  });

  it("4: without a maximum the first call of a small budget is admitted, and later estimates are learned", async () => {
    const { budget, used } = budgetOf([tpm(600)]);
    const call = { user: "u", model: "small", input: [{ role: "user", content: "x".repeat(396) }] };
    const first = await budget.reserve(call);
    expect(await used()).toEqual({ tpm: 600 });
    await first.settle({ inputTokens: 100, outputTokens: 20 });
    for (let n = 0; n < 60; n++) {
      vi.setSystemTime(Date.now() + 60_000);
      await (await budget.reserve(call)).settle({ inputTokens: 80, outputTokens: 20 });
    }
    vi.setSystemTime(Date.now() + 60_000);
    const { reserved } = await budget.reserve(call);
    expect(reserved.inputTokens).toBeGreaterThanOrEqual(80);
    expect(reserved.inputTokens).toBeLessThan(84);
    expect(reserved.outputTokens).toBe(20);
  });

  it("4: a tokenizer counts instead of characters / 4", async () => {
    const tokens = vi.fn((text: string) => text.split(" ").length);
    const { budget, used } = budgetOf([tpm(600)], { estimate: { tokens, outputTokens: 7 } });
    await budget.reserve({ user: "u", model: "small", input: "one two three" });
    expect(tokens).toHaveBeenCalledWith("one two three", "small");
    expect(await used()).toEqual({ tpm: 10 });
  });

  it("4: but a maximum that was told is never cut: it is refused at once, with its own code", async () => {
    const { budget } = budgetOf([tpm(600)]);
    const call = { user: "u", input: "hello", outputTokens: 601 };
    await expect(budget.reserve(call)).rejects.toMatchObject({ code: "NEVER_FITS" });
    expect((await budget.tryReserve(call)).decision.retryAfterMs).toBe(Infinity);
  });

  it("5: tokens from the cache do not count, unless the limit says so; dollars know their price", async () => {
    const { budget, used } = budgetOf([
      tpm(1000),
      { ...tpm(1000), name: "all", countCached: true },
      { name: "usd", unit: "usd", limit: 1, window: "1d", by: ["user"] },
    ]);
    const r = await budget.reserve({ user: "u", model: "small", inputTokens: 500, outputTokens: 100 });
    await r.settle({
      prompt_tokens: 500,
      completion_tokens: 100,
      prompt_tokens_details: { cached_tokens: 400 },
    });
    expect(await used()).toEqual({ tpm: 200, all: 600, usd: 0.00054 });
  });

  it("5: a usage of unknown shape is never read as zero", async () => {
    const { budget, used } = budgetOf([tpm(1000), parallel(1)]);
    for (const usage of [{ tokensUsed: 12 }, {}, { usage: null }, { inputTokens: "12" }, "12", null]) {
      const r = await budget.reserve({ user: "u", tokens: 100 });
      await expect(r.settle(usage)).rejects.toMatchObject({ code: "UNKNOWN_USAGE" });
      await r.cancel();
    }
    expect(await used()).toEqual({ tpm: 600, parallel: 0 });
  });

  it("6: the limit that refused is named, and 'never' is told apart from 'wait'", async () => {
    const { budget } = budgetOf([tpm(100), { ...tpm(150), name: "hour", window: "1h" }, parallel(9)]);
    await budget.reserve({ user: "u", tokens: 90 });
    vi.setSystemTime(Date.now() + 20_000);
    const waits = await budget.tryReserve({ user: "u", tokens: 20 });
    expect(waits.decision).toMatchObject({ rule: "tpm", retryAfterMs: 40_000 });
    const waiting = budget.reserve({ user: "u", tokens: 20 }, { timeoutMs: 1000 });
    const failed = expect(waiting).rejects.toMatchObject({
      code: "TIMEOUT",
      message: expect.stringContaining('"tpm"'),
      decision: { rule: "tpm", retryAfterMs: 40_000 },
    });
    await vi.advanceTimersByTimeAsync(1000);
    await failed;
    vi.setSystemTime(Date.now() + 60_000);
    const longer = await budget.tryReserve({ user: "u", tokens: 100 });
    expect(longer.decision).toMatchObject({ rule: "hour", allowed: false });
    await expect(budget.reserve({ user: "u", tokens: 101 })).rejects.toMatchObject({
      code: "NEVER_FITS",
      message: expect.stringContaining('101 tokens can never fit limit "tpm"'),
    });
  });

  it("8: a run stops hard at its cap of steps, tokens or dollars, and other runs go on", async () => {
    const { budget, used } = budgetOf([{ ...tpm(10_000), by: ["user"] }]);
    const call = { user: "u", model: "small", inputTokens: 50, outputTokens: 50 };
    const run = budget.run({ steps: 3, tokens: 1000, usd: 1 });
    for (let n = 0; n < 3; n++) await (await run.reserve(call)).settle({ inputTokens: 50, outputTokens: 10 });
    await expect(run.reserve(call, { timeoutMs: 1000 })).rejects.toMatchObject({
      code: "RUN_OVER",
      message: expect.stringContaining('cap "run-steps" of 3 requests'),
    });
    expect(await used()).toEqual({ tpm: 180 });
    await expect(budget.run({ id: run.id, steps: 3 }).reserve(call)).rejects.toMatchObject({
      code: "RUN_OVER",
    });
    expect((await budget.run({ tokens: 150 }).reserve(call)).allowed).toBe(true);
    const poor = budget.run({ tokens: 150 });
    await (await poor.reserve(call)).settle();
    await expect(poor.reserve(call)).rejects.toThrow('cap "run-tokens" of 150 tokens');
    const cheap = budget.run({ usd: 0.0003 });
    await (await cheap.reserve(call)).settle();
    await expect(cheap.reserve(call)).rejects.toThrow('cap "run-usd" of $0.0003');
    await expect(budget.run({ steps: 2 }).run({ tokens: 10 }).reserve(call)).rejects.toMatchObject({
      code: "NEVER_FITS",
    });
  });
});

describe("waiting", () => {
  /** Notes who was admitted when, in seconds. */
  function diary(budget: ReturnType<typeof budgetOf>["budget"]) {
    const began = Date.now();
    const entries: string[] = [];
    const reserve = (who: string, subject: object, options = {}) =>
      budget.reserve({ user: "u", ...subject }, options).then(
        (r) => {
          entries.push(`${who} at ${(Date.now() - began) / 1000}`);
          return r;
        },
        (error) => {
          entries.push(`${who}: ${error.code ?? error.message}`);
          return undefined;
        },
      );
    return { entries, reserve };
  }

  it("7: a heavy call is not overtaken by light ones, of whichever user, that share its limit", async () => {
    const { budget } = budgetOf([
      { ...tpm(100), name: "org", by: ["org"] },
      { ...tpm(100), name: "user" },
    ]);
    const { entries, reserve } = diary(budget);
    await reserve("first", { org: "o", tokens: 60 });
    void reserve("heavy", { org: "o", tokens: 100 });
    for (let n = 0; n < 3; n++) void reserve(`light ${n}`, { org: "o", user: `v${n}`, tokens: 10 });
    void reserve("elsewhere", { org: "p", user: "w", tokens: 10 });
    await vi.advanceTimersByTimeAsync(59_999);
    expect(entries).toEqual(["first at 0", "elsewhere at 0"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(entries).toEqual(["first at 0", "elsewhere at 0", "heavy at 60"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(entries.slice(3)).toEqual(["light 0 at 120", "light 1 at 120", "light 2 at 120"]);
  });

  it("is not held up by one who waits for a limit of his own", async () => {
    const { budget } = budgetOf([
      { ...tpm(1000), name: "org", by: ["org"] },
      { ...tpm(100), name: "user" },
    ]);
    const { entries, reserve } = diary(budget);
    await reserve("first", { org: "o", tokens: 100 });
    void reserve("same user", { org: "o", tokens: 50 });
    void reserve("other user", { org: "o", user: "v", tokens: 50 });
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "other user at 0"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(entries[2]).toBe("same user at 60");
  });

  it("goes by priority, first come first served within one, and ages across", async () => {
    const { budget } = budgetOf([{ name: "one", unit: "requests", limit: 1, window: "1m", by: ["user"] }]);
    const { entries, reserve } = diary(budget);
    await reserve("head", {});
    void reserve("low 1", {});
    void reserve("low 2", {});
    await vi.advanceTimersByTimeAsync(5000);
    void reserve("high 1", {}, { priority: 1 });
    void reserve("high 2", {}, { priority: 1 });
    await vi.advanceTimersByTimeAsync(6000);
    void reserve("high, 11 s later", {}, { priority: 1 });
    void reserve("urgent, 11 s later", {}, { priority: 5 });
    await vi.advanceTimersByTimeAsync(400_000);
    expect(entries.map((entry) => entry.split(" at ")[0])).toEqual([
      "head",
      "urgent, 11 s later",
      "high 1",
      "high 2",
      "low 1",
      "low 2",
      "high, 11 s later",
    ]);
  });

  it("ends at once when another call gives back what it did not use", async () => {
    const { budget } = budgetOf([tpm(100), parallel(1)]);
    const { entries, reserve } = diary(budget);
    const first = await reserve("first", { tokens: 100 });
    void reserve("second", { tokens: 40 });
    await vi.advanceTimersByTimeAsync(3000);
    await first?.settle({ tokens: 60 });
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "second at 3"]);
  });

  it("for what other processes give back is at most a fifth of a second late", async () => {
    const store = memoryStore({ clock: Date.now });
    const [here, there] = [remotely(store), remotely(store)].map(
      (shared) => budgetOf([parallel(1)], { store: shared }).budget,
    );
    const { entries, reserve } = diary(here);
    const held = await there.reserve({ user: "u" });
    void reserve("waiter", {});
    await vi.advanceTimersByTimeAsync(1000);
    await held.settle();
    await vi.advanceTimersByTimeAsync(200);
    expect(entries).toEqual([expect.stringMatching(/^waiter at 1\.?[0-2]*$/)]);
  });

  it("ends by its signal, and by closing the budget", async () => {
    const { budget } = budgetOf([parallel(1)]);
    const { entries, reserve } = diary(budget);
    await reserve("first", {});
    const controller = new AbortController();
    void reserve("aborted", {}, { signal: controller.signal });
    void reserve("closed", {});
    controller.abort(new Error("the user left"));
    await vi.advanceTimersByTimeAsync(0);
    await budget.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "aborted: the user left", "closed: CLOSED"]);
    await expect(budget.tryReserve({ user: "u" })).rejects.toMatchObject({ code: "CLOSED" });
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
    [[{ name: "a", unit: "concurrent", limit: 1, window: "1m" }], "needs a lease"],
    [[{ name: "a", unit: "tokens", limit: 1, lease: "1m" }], "needs a window"],
    [[{ ...tpm(0) }], "limit must be a whole number"],
    [[{ ...tpm(1), unit: "usd", limit: 0.0000001 }], "limit must be a whole number"],
  ])("the limits %j", (limits, message) => {
    expect(() => createBudget({ limits: limits as Limit[] })).toThrow(message);
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
