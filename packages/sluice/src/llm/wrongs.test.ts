import { describe, expect, it, vi } from "vitest";
import { budgetOf, budgetsOnVirtualTime, parallel, tpm } from "../../test/budgets.js";
import { memoryStore } from "../stores/memory.js";
import { remotely } from "../testing/remotely.js";

budgetsOnVirtualTime();

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
