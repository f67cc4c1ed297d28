import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { breakDown, limited } from "../../test/moodyStore.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("while its store hangs, resilient", () => {
  it.each(["open", "closed", "local"] as const)("answers by %s at the deadline", async (onOutage) => {
    const { world, limiter } = limited({ onOutage, deadlineMs: 30 });
    world.mood = "hung";
    const told = vi.fn();
    void limiter.tryAcquire("a").then(told);
    await vi.advanceTimersByTimeAsync(29);
    expect(told).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2);
    expect(told).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ allowed: onOutage !== "closed", degraded: onOutage }),
    );
  });

  it("stops asking, and answers at once", async () => {
    const { world, limiter } = limited();
    world.mood = "hung";
    await breakDown(limiter);
    const { asked } = world;
    vi.setSystemTime(Date.now());
    for (let n = 0; n < 1000; n++) await limiter.tryAcquire("a");
    expect(world.asked - asked).toBeLessThanOrEqual(1);
  });

  it("probes it with one call at a time, about five a second, and no more than a bounded number", async () => {
    const { world, limiter } = limited();
    world.mood = "hung";
    await breakDown(limiter);
    const before = world.asked;
    for (let ms = 0; ms < 10_000; ms += 5) {
      for (let n = 0; n < 3; n++) void limiter.tryAcquire("a");
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(world.asked - before).toBeGreaterThan(30);
    expect(world.asked - before).toBeLessThan(101);
  });

  it("has no more than 10,000 calls unanswered", async () => {
    const { world, limiter } = limited();
    world.mood = "hung";
    const answers = Array.from({ length: 25_000 }, () => limiter.tryAcquire("a"));
    await vi.advanceTimersByTimeAsync(60);
    expect((await Promise.all(answers)).every(({ degraded }) => degraded === "closed")).toBe(true);
    expect(world.asked).toBeLessThanOrEqual(10_001);
  });

  it("gives up acquire's turn no sooner than its caller does, and goes on when the outage is over", async () => {
    const { world, limiter, wake } = limited();
    world.mood = "hung";
    const admitted = vi.fn();
    void limiter.acquire("a").then(admitted);
    await vi.advanceTimersByTimeAsync(5000);
    expect(admitted).not.toHaveBeenCalled();
    wake();
    await vi.advanceTimersByTimeAsync(1100);
    expect(admitted).toHaveBeenCalledOnce();
    expect(admitted.mock.calls[0][0].degraded).toBeUndefined();
  });
});

describe("when its store is back, resilient", () => {
  it("finds out within a second, and tells", async () => {
    const events = { onOutage: vi.fn(), onRecover: vi.fn() };
    const { world, limiter, wake } = limited({ events });
    world.mood = "hung";
    await breakDown(limiter);
    await vi.advanceTimersByTimeAsync(2000);
    expect(events.onOutage).toHaveBeenCalledExactlyOnceWith({
      error: expect.objectContaining({ code: "STORE_FAILED" }),
    });
    wake();
    const backAt = performance.now();
    while ((await limiter.tryAcquire("b")).degraded !== undefined) await vi.advanceTimersByTimeAsync(10);
    expect(performance.now() - backAt).toBeLessThan(400);
    expect(events.onRecover).toHaveBeenCalledOnce();
    expect(events.onRecover.mock.calls[0][0].outageMs).toBeGreaterThan(1900);
  });

  it("lets calls come back as they are answered, and no herd", async () => {
    const { world, limiter, wake } = limited({}, 1_000_000);
    world.mood = "hung";
    await breakDown(limiter);
    await vi.advanceTimersByTimeAsync(1000);
    wake();
    const inFlight: number[] = [];
    for (let round = 0; round < 14; round++) {
      const before = world.asked;
      const calls = Array.from({ length: 2000 }, () => limiter.tryAcquire("b"));
      inFlight.push(world.asked - before);
      await Promise.all(calls);
    }
    expect(inFlight.slice(0, 5)).toEqual([1, 1, 2, 4, 8]);
    expect(inFlight.at(-1)).toBe(2000);
  });

  it("is out again at the first failure of that time", async () => {
    const { world, limiter } = limited();
    world.mood = "failing";
    await breakDown(limiter);
    await vi.advanceTimersByTimeAsync(1000);
    world.mood = "well";
    expect((await limiter.tryAcquire("a")).degraded).toBeUndefined();
    world.mood = "failing";
    await limiter.tryAcquire("a");
    const { asked } = world;
    await limiter.tryAcquire("a");
    expect(world.asked).toBe(asked);
  });

  it("drops late answers; what they charged counts", async () => {
    const { world, limiter, wake } = limited();
    world.mood = "hung";
    const decision = limiter.tryAcquire("a", 4);
    await vi.advanceTimersByTimeAsync(51);
    expect((await decision).degraded).toBe("closed");
    wake();
    await vi.advanceTimersByTimeAsync(1);
    expect((await decision).allowed).toBe(false);
    expect((await limiter.status("a"))[0].count).toBe(4);
  });
});
