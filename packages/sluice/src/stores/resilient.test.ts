import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SluiceError } from "../errors.js";
import { createLimiter } from "../limiter.js";
import { leakyBucket, slidingLog } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "./memory.js";
import { type ResilientEvents, type ResilientOptions, resilient } from "./resilient.js";

type Mood = "well" | "hung" | "failing";

/** A store as far away as Redis whose health a test sets; it counts how often it was asked. */
function moodyStore() {
  const memory = memoryStore();
  const waiting: (() => void)[] = [];
  const world = { mood: "well" as Mood, asked: 0, error: new Error("READONLY") as unknown };
  async function answer<T>(call: () => T): Promise<T> {
    world.asked++;
    if (world.mood === "failing") throw world.error;
    if (world.mood === "hung") await new Promise<void>((resolve) => waiting.push(resolve));
    return call();
  }
  const store: Store = {
    sync: false,
    decide: (charges, commit) => answer(() => memory.decide(charges, commit) as never),
    settle: (settlements) => answer(() => memory.settle(settlements) as boolean),
    status: (charges) => answer(() => memory.status(charges) as never),
    count: (charges, from, to) => answer(() => memory.count(charges, from, to) as never),
    reset: (charges) => answer(() => memory.reset(charges) as undefined),
    close: () => {},
  };
  const wake = () => {
    world.mood = "well";
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { world, store, wake };
}

function limited(options: Partial<ResilientOptions> = {}, limit = 10) {
  const moody = moodyStore();
  const store = resilient(moody.store, { onOutage: "closed", ...options });
  const limiter = createLimiter({ name: "test", store, rules: slidingLog({ limit, window: 60_000 }) });
  return { ...moody, limiter, resilientStore: store };
}

/** Calls until the breaker has opened, in virtual time. */
async function breakDown(limiter: ReturnType<typeof limited>["limiter"], deadlineMs = 50): Promise<void> {
  const calls = Array.from({ length: 5 }, () => limiter.peek("down"));
  await vi.advanceTimersByTimeAsync(deadlineMs + 1);
  await Promise.all(calls);
}

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

describe("resilient", () => {
  it("takes a few failures for what they are, and does not stop asking", async () => {
    const { world, limiter } = limited();
    for (let n = 0; n < 20; n++) {
      world.mood = n % 4 === 3 ? "well" : "failing";
      expect((await limiter.tryAcquire("a")).degraded).toBe(n % 4 === 3 ? undefined : "closed");
    }
    expect(world.asked).toBe(20);
  });

  it("answers at once when the store refuses at once", async () => {
    const { world, limiter } = limited({ onOutage: "open" });
    world.mood = "failing";
    const before = performance.now();
    expect(await limiter.tryAcquire("a")).toMatchObject({ allowed: true, degraded: "open", retryAfterMs: 0 });
    expect(performance.now()).toBe(before);
  });

  it("lets misuse through, and does not take it for an outage", async () => {
    const { world, limiter } = limited({ onOutage: "open" });
    world.mood = "failing";
    world.error = new SluiceError("INVALID_COST", "no");
    for (let n = 0; n < 20; n++) {
      await expect(limiter.tryAcquire("a")).rejects.toMatchObject({ code: "INVALID_COST" });
    }
    world.mood = "well";
    expect((await limiter.tryAcquire("a")).degraded).toBeUndefined();
    await expect(limiter.tryAcquire("a", -1)).rejects.toMatchObject({ code: "INVALID_COST" });
  });

  it("is broken by no listener", async () => {
    const breaking = () => {
      throw new Error("listener");
    };
    const events: ResilientEvents = {
      onOutage: async () => breaking(),
      onRecover: breaking,
      onLost: breaking,
    };
    const { world, limiter, wake } = limited({ onOutage: "open", events });
    const reservation = await limiter.reserve("a", 5);
    world.mood = "failing";
    await breakDown(limiter);
    await reservation.settle(1);
    await vi.advanceTimersByTimeAsync(1000);
    wake();
    expect((await limiter.tryAcquire("a")).degraded).toBeUndefined();
  });

  it("gives a process its part of the limit under local, at least 1, by the rule's own arithmetic", async () => {
    for (const [limit, instances, share] of [
      [100, 4, 25],
      [10, 3, 3],
      [2, 8, 1],
    ]) {
      const { world, limiter } = limited({ onOutage: "local", instances }, limit);
      world.mood = "failing";
      let admitted = 0;
      while ((await limiter.tryAcquire("a")).allowed) admitted++;
      expect(admitted).toBe(share);
      expect(await limiter.peek("a")).toMatchObject({ degraded: "local", limit: share, remaining: 0 });
      await vi.advanceTimersByTimeAsync(60_000);
      expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    }
  });

  it("does not call a cost impossible under local that fits the whole limit", async () => {
    const { world, limiter } = limited({ onOutage: "local", instances: 4 }, 100);
    world.mood = "failing";
    expect(await limiter.tryAcquire("a", 50)).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    expect(await limiter.tryAcquire("a", 101)).toMatchObject({ allowed: false, retryAfterMs: Infinity });
  });

  it("shares a bucket's burst as well", async () => {
    const moody = moodyStore();
    moody.world.mood = "failing";
    const store = resilient(moody.store, { onOutage: "local", instances: 2 });
    const limiter = createLimiter({ store, rules: leakyBucket({ limit: 10, window: 1000, burst: 6 }) });
    expect((await limiter.tryAcquire("a", 3)).allowed).toBe(true);
    expect((await limiter.tryAcquire("a", 1)).allowed).toBe(false);
  });

  it("settles a reservation where it was counted", async () => {
    const { world, limiter, wake } = limited({ onOutage: "local" });
    await limiter.tryAcquire("a", 3);
    world.mood = "failing";
    const local = await limiter.reserve("a", 10);
    expect(local.decision).toMatchObject({ allowed: true, degraded: "local" });
    wake();
    await local.cancel();
    expect((await limiter.status("a"))[0].count).toBe(3);
    world.mood = "failing";
    expect(await limiter.tryAcquire("a", 10)).toMatchObject({ allowed: true, degraded: "local" });
  });

  it("settles nothing of what was let through uncounted", async () => {
    const { world, limiter, wake } = limited({ onOutage: "open" });
    world.mood = "failing";
    const reservation = await limiter.reserve("a", 4);
    wake();
    await limiter.tryAcquire("a", 4);
    await reservation.settle(0);
    expect((await limiter.status("a"))[0].count).toBe(4);
  });

  it("tells of settlements that were lost, and rejects none", async () => {
    const onLost = vi.fn();
    const { world, limiter } = limited({ events: { onLost } });
    const reservation = await limiter.reserve("a", 4);
    world.mood = "failing";
    await reservation.settle(1);
    expect(onLost).toHaveBeenCalledExactlyOnceWith({
      settlements: [expect.objectContaining({ key: "a", cost: 4, actual: 1 })],
      error: expect.objectContaining({ code: "STORE_FAILED" }),
    });
  });

  it("rejects what no policy can answer, within the deadline", async () => {
    const { world, limiter } = limited({ onOutage: "open" });
    world.mood = "hung";
    const calls = Promise.allSettled([limiter.status("a"), limiter.count("a"), limiter.reset("a")]);
    await vi.advanceTimersByTimeAsync(51);
    for (const call of await calls) {
      expect(call).toMatchObject({ status: "rejected", reason: { code: "STORE_FAILED" } });
    }
  });

  it("forgets under local what is reset", async () => {
    const { world, limiter, wake } = limited({ onOutage: "local" });
    world.mood = "failing";
    await limiter.tryAcquire("a", 10);
    wake();
    await limiter.reset("a");
    world.mood = "failing";
    expect((await limiter.tryAcquire("a", 10)).allowed).toBe(true);
  });

  it("gives each limiter its own policy on one store, and what one has learnt to all", async () => {
    const { store, world } = moodyStore();
    const rules = slidingLog({ limit: 10, window: 1000 });
    const login = createLimiter({ name: "login", store: resilient(store, { onOutage: "closed" }), rules });
    const search = createLimiter({ name: "search", store: resilient(store, { onOutage: "open" }), rules });
    world.mood = "hung";
    await breakDown(login);
    const { asked } = world;
    expect(await search.tryAcquire("a")).toMatchObject({ allowed: true, degraded: "open" });
    expect(await login.tryAcquire("a")).toMatchObject({ allowed: false, degraded: "closed" });
    expect(world.asked - asked).toBeLessThanOrEqual(1);
  });

  it("lets a process end, and not before its decisions are there", () => {
    const url = (path: string) =>
      JSON.stringify(new URL(path, import.meta.url).href.replace("/src/", "/dist/"));
    const code = `
      const { resilient } = await import(${url("./resilient.js")});
      const { createLimiter } = await import(${url("../limiter.js")});
      const { slidingLog } = await import(${url("../rule.js")});
      const never = { sync: false, decide: () => new Promise(() => {}), close() {} };
      const store = resilient(never, { onOutage: "open", deadlineMs: 20 });
      const limiter = createLimiter({ store, rules: slidingLog({ limit: 1, window: 1000 }) });
      console.log((await limiter.tryAcquire("a")).degraded);`;
    const args = ["--input-type=module", "--eval", code];
    const cwd = fileURLToPath(new URL(".", import.meta.url));
    expect(execFileSync(process.execPath, args, { cwd, encoding: "utf8", timeout: 30_000 })).toBe("open\n");
  });

  it.each([
    [{}, `onOutage must be "open" or "closed" or "local"; got undefined.`],
    [{ onOutage: "maybe" }, `got "maybe".`],
    [{ onOutage: "open", deadlineMs: 0 }, "deadlineMs must be a whole number from 1 to 60000; got 0."],
    [{ onOutage: "open", instances: 0.5 }, "instances must be a whole number of at least 1"],
    [{ onOutage: "open", events: { onLost: 5 } }, "events.onLost must be a function; got 5."],
    [undefined, "resilient takes { onOutage, deadlineMs?, ... } second; got undefined."],
  ])("refuses the options %j", (options, message) => {
    const creating = () => resilient(memoryStore(), options as ResilientOptions);
    expect(creating).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
    expect(creating).toThrow(message);
  });
});
