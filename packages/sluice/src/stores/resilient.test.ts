import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { breakDown, limited, moodyStore } from "../../test/moodyStore.js";
import { SluiceError } from "../errors.js";
import { createLimiter } from "../limiter.js";
import { leakyBucket, slidingLog } from "../rule.js";
import { memoryStore } from "./memory.js";
import { type ResilientEvents, type ResilientOptions, resilient } from "./resilient.js";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
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
