import { getEventListeners } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { onVirtualTime } from "../test/virtualTime.js";
import { diary, twoPerSecond } from "../test/waiters.js";
import { createLimiter, type Limiter } from "./limiter.js";
import { slidingLog } from "./rule.js";
import { memoryStore } from "./stores/memory.js";

onVirtualTime();

describe("acquire", () => {
  it("resolves at once while there is room", async () => {
    const { limiter } = twoPerSecond();
    const decision = await limiter.acquire("a");
    expect(decision).toMatchObject({ allowed: true, remaining: 1, retryAfterMs: 0 });
  });

  it("admits first come first served, each as soon as there is room", async () => {
    const { entries, acquire } = diary(twoPerSecond().limiter);
    for (const who of ["1st", "2nd", "3rd", "4th", "5th"]) acquire(who);
    await vi.advanceTimersByTimeAsync(2500);
    expect(entries).toEqual(["1st at 0", "2nd at 0", "3rd at 1000", "4th at 1000", "5th at 2000"]);
  });

  it("does not let light costs starve a heavy one", async () => {
    const { limiter } = twoPerSecond();
    await limiter.tryAcquire("a");
    const { entries, acquire } = diary(limiter);
    acquire("heavy", { cost: 2 });
    for (let n = 0; n < 5; n++) acquire(`light ${n}`);
    await vi.advanceTimersByTimeAsync(1000);
    expect(entries).toEqual(["heavy at 1000"]);
    await vi.advanceTimersByTimeAsync(3000);
    expect(entries).toHaveLength(6);
  });

  it("keeps the lines of different keys apart", async () => {
    const { entries, acquire } = diary(twoPerSecond().limiter);
    acquire("a", { cost: 2 });
    acquire("blocked a", { cost: 2 });
    acquire("b", { cost: 2 }, "b");
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["a at 0", "b at 0"]);
    await vi.advanceTimersByTimeAsync(1000);
  });

  it("asks the store once per denial and once per admission: it never polls", async () => {
    const { limiter, asked } = twoPerSecond();
    const { entries, acquire } = diary(limiter);
    for (let n = 0; n < 20; n++) acquire(`${n}`);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(entries).toHaveLength(20);
    // 20 admissions; the head of the line was denied once in each of the nine seconds it had to wait.
    expect(asked).toHaveBeenCalledTimes(29);
  });

  it("waits through rests that are longer than a timer can be", async () => {
    const store = memoryStore({ clock: Date.now });
    const limiter = createLimiter({ rules: slidingLog({ limit: 1, window: "60d" }), store });
    const { entries, acquire } = diary(limiter);
    acquire("1st");
    acquire("2nd");
    await vi.advanceTimersByTimeAsync(60 * 86_400_000 - 1);
    expect(entries).toEqual(["1st at 0"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(entries).toEqual(["1st at 0", `2nd at ${60 * 86_400_000}`]);
  });

  it("refuses at once what can never fit, even behind a long line", async () => {
    const { limiter, asked } = twoPerSecond();
    const { entries, acquire } = diary(limiter);
    for (let n = 0; n < 3; n++) acquire(`${n}`, { cost: 2 });
    await vi.advanceTimersByTimeAsync(0);
    const before = asked.mock.calls.length;
    acquire("huge", { cost: 3 });
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["0 at 0", "huge: NEVER_FITS at 0"]);
    expect(asked).toHaveBeenCalledTimes(before);
    await vi.advanceTimersByTimeAsync(5000);
  });

  it.each([
    [{ timeoutMs: 0 }, "timeoutMs must be a whole number from 1 to 2147483647; got 0."],
    [{ timeoutMs: Number.NaN }, "got NaN."],
    [{ signal: {} as AbortSignal }, "signal must be an AbortSignal; got an object."],
  ])("refuses the options %j", async (options, message) => {
    const { limiter, asked } = twoPerSecond();
    await expect(limiter.acquire("a", options)).rejects.toMatchObject({
      code: "INVALID_OPTION",
      message: expect.stringContaining(message),
    });
    expect(asked).not.toHaveBeenCalled();
  });
});

describe("a waiting call is woken early", () => {
  it.each([
    [
      "a settlement that gives back",
      async (_: Limiter, held: { settle(cost: number): Promise<void> }) => held.settle(1),
    ],
    ["a cancelled reservation", async (_: Limiter, held: { cancel(): Promise<void> }) => held.cancel()],
    ["a reset", async (limiter: Limiter) => limiter.reset("a")],
  ])("by %s", async (_, free) => {
    const { limiter } = twoPerSecond();
    const held = await limiter.reserve("a", 2);
    const { entries, acquire } = diary(limiter);
    acquire("waiter");
    await vi.advanceTimersByTimeAsync(300);
    expect(entries).toEqual([]);
    await free(limiter, held);
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["waiter at 300"]);
  });

  it("and waits on, once, when what was given back is not enough", async () => {
    const { limiter, asked } = twoPerSecond();
    const held = await limiter.reserve("a", 2);
    const { entries, acquire } = diary(limiter);
    acquire("heavy", { cost: 2 });
    await vi.advanceTimersByTimeAsync(300);
    const before = asked.mock.calls.length;
    await held.settle(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toHaveBeenCalledTimes(before + 1);
    await vi.advanceTimersByTimeAsync(600);
    expect(entries).toEqual(["heavy at 1000"]);
  });
});

describe("a waiting call gives up", () => {
  it("after timeoutMs, charging nothing and letting the next one pass", async () => {
    const { limiter } = twoPerSecond();
    await limiter.tryAcquire("a");
    const { entries, acquire } = diary(limiter);
    acquire("impatient", { cost: 2, timeoutMs: 200 });
    acquire("patient");
    await vi.advanceTimersByTimeAsync(200);
    expect(entries.sort()).toEqual(["impatient: TIMEOUT at 200", "patient at 200"]);
    expect((await limiter.status("a"))[0].count).toBe(2);
  });

  it("while not at the head too", async () => {
    const { limiter } = twoPerSecond();
    await limiter.tryAcquire("a", 2);
    const { entries, acquire } = diary(limiter);
    acquire("head");
    acquire("second", { timeoutMs: 100 });
    acquire("third");
    await vi.advanceTimersByTimeAsync(1000);
    expect(entries).toEqual(["second: TIMEOUT at 100", "head at 1000", "third at 1000"]);
  });

  it("when its signal is aborted, with the signal's own reason", async () => {
    const { limiter } = twoPerSecond();
    await limiter.tryAcquire("a", 2);
    const controller = new AbortController();
    const waiting = limiter.acquire("a", { signal: controller.signal });
    const failed = expect(waiting).rejects.toThrow("the user left");
    await vi.advanceTimersByTimeAsync(10);
    controller.abort(new Error("the user left"));
    await failed;
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(0);
  });

  it("before it begins when the signal was aborted already, asking nothing", async () => {
    const { limiter, asked } = twoPerSecond();
    await expect(limiter.acquire("a", { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    expect(asked).not.toHaveBeenCalled();
  });

  it("no more once it was admitted, and listens to the signal no longer", async () => {
    const { limiter } = twoPerSecond();
    const controller = new AbortController();
    const decision = await limiter.acquire("a", { signal: controller.signal, timeoutMs: 500 });
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0);
    controller.abort();
    expect(decision.allowed).toBe(true);
    expect((await limiter.status("a"))[0].count).toBe(1);
  });

  it("when the limiter is closed", async () => {
    const { limiter } = twoPerSecond();
    await limiter.tryAcquire("a", 2);
    const { entries, acquire } = diary(limiter);
    acquire("head");
    acquire("second");
    await vi.advanceTimersByTimeAsync(10);
    await limiter.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["head: CLOSED at 10", "second: CLOSED at 10"]);
  });
});

describe("maxWaiting", () => {
  it("bounds those who wait, over all keys, and frees a place when one leaves", async () => {
    const { limiter } = twoPerSecond({ maxWaiting: 2 });
    await limiter.tryAcquire("a", 2);
    await limiter.tryAcquire("b", 2);
    const { entries, acquire } = diary(limiter);
    acquire("a1", { timeoutMs: 100 });
    acquire("b1", {}, "b");
    await vi.advanceTimersByTimeAsync(0);
    acquire("a2");
    acquire("c1", {}, "c");
    await vi.advanceTimersByTimeAsync(0);
    expect(entries.sort()).toEqual(["a2: QUEUE_FULL at 0", "c1 at 0"]);
    await vi.advanceTimersByTimeAsync(100);
    acquire("a3");
    await vi.advanceTimersByTimeAsync(2000);
    expect(entries).toContain("a3 at 1000");
  });

  it("keeps the last place for the one who came first", async () => {
    const { limiter } = twoPerSecond({ maxWaiting: 1 });
    await limiter.tryAcquire("a", 2);
    const { entries, acquire } = diary(limiter);
    acquire("first");
    acquire("second");
    await vi.advanceTimersByTimeAsync(1000);
    expect(entries).toEqual(["second: QUEUE_FULL at 0", "first at 1000"]);
  });

  it("of 0 admits at once or not at all", async () => {
    const { entries, acquire } = diary(twoPerSecond({ maxWaiting: 0 }).limiter);
    for (const who of ["1st", "2nd", "3rd"]) {
      acquire(who);
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(entries).toEqual(["1st at 0", "2nd at 0", "3rd: QUEUE_FULL at 0"]);
  });
});
