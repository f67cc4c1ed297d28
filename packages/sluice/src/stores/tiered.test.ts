import { describe, expect, it, vi } from "vitest";
import { createLimiter, type Limiter } from "../limiter.js";
import { leakyBucket, type RuleInput, slidingCells, slidingLog, tokenBucket } from "../rule.js";
import type { Store } from "../store.js";
import { remotely } from "../testing/remotely.js";
import { START } from "../testing/world.js";
import { memoryStore } from "./memory.js";
import { resilient } from "./resilient.js";
import { type TieredOptions, tiered, tieredOn } from "./tiered.js";

/** Processes with a tier each on one remote store, on time that a test sets; it counts what the remote is asked. */
function stage(options: TieredOptions = {}, wrap = (store: Store) => store) {
  const clock = { now: START };
  const memory = memoryStore({ clock: () => clock.now });
  const asked: number[] = [];
  const gate = { open: Promise.resolve() };
  const counted: Store = {
    ...remotely(memory),
    async decide(charges, commit) {
      asked.push(charges[0].cost);
      const decisions = await memory.decide(charges, commit);
      await gate.open;
      return decisions;
    },
  };
  const timers: { at: number; call: () => void }[] = [];
  const timing = {
    now: () => clock.now,
    later: (ms: number, call: () => void) => {
      timers.push({ at: clock.now + ms, call });
      return { ref() {}, unref() {} };
    },
    random: () => 0.5,
  };
  const process = (rules: RuleInput | RuleInput[], name = "test") =>
    createLimiter({ name, rules, store: tieredOn(timing, wrap(counted), options) });
  /** Time passes, and what was due is done. */
  async function pass(ms: number): Promise<void> {
    clock.now += ms;
    for (const timer of timers.splice(0)) timer.at <= clock.now ? timer.call() : timers.push(timer);
    await new Promise(setImmediate);
  }
  return { clock, asked, memory, gate, process, pass, counted };
}

const take = async (limiter: Limiter, key: string, times: number) => {
  const decisions = [];
  for (let n = 0; n < times; n++) decisions.push(await limiter.tryAcquire(key));
  return decisions;
};

describe("a refusal", () => {
  it("is remembered until the very millisecond it named, and no longer", async () => {
    const { clock, asked, process } = stage({ staleMs: 60_000 });
    const limiter = process(slidingLog({ limit: 3, window: 1000 }));
    await take(limiter, "a", 4);
    expect(asked.length).toBe(4);
    for (let n = 0; n < 998; n++) {
      clock.now++;
      const { allowed, retryAfterMs, resetAfterMs } = await limiter.tryAcquire("a");
      expect({ allowed, retryAfterMs, resetAfterMs }).toEqual({
        allowed: false,
        retryAfterMs: 999 - n,
        resetAfterMs: 999 - n,
      });
    }
    expect(asked.length).toBe(4);
    clock.now += 2;
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect(asked.length).toBe(5);
  });

  it("of a heavy cost leaves light ones alone", async () => {
    const { process } = stage();
    const limiter = process(slidingLog({ limit: 10, window: "1h" }));
    await limiter.tryAcquire("a", 3);
    expect((await limiter.tryAcquire("a", 50)).retryAfterMs).toBe(Infinity);
    expect((await limiter.tryAcquire("a", 8)).allowed).toBe(false);
    for (let n = 0; n < 7; n++) expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
  });

  it("is told exactly for each cost that is asked for, and costs of all sizes ask no more than a few times", async () => {
    const { asked, clock, process } = stage({ staleMs: 10_000 });
    const limiter = process(slidingLog({ limit: 10, window: 1000 }));
    for (let n = 0; n < 10; n++) {
      await limiter.tryAcquire("a");
      clock.now += 10;
    }
    expect((await limiter.tryAcquire("a", 1)).retryAfterMs).toBe(900);
    expect((await limiter.tryAcquire("a", 3)).retryAfterMs).toBe(920);
    expect((await limiter.tryAcquire("a", 3)).retryAfterMs).toBe(920);
    const before = asked.length;
    for (let n = 0; n < 1000; n++) expect((await limiter.tryAcquire("a", 1 + (n % 100))).allowed).toBe(false);
    expect(asked.length - before).toBeLessThanOrEqual(8);
  });

  it("is forgotten by a reset and by a settlement of this process", async () => {
    const { process } = stage();
    const limiter = process(slidingLog({ limit: 4, window: "1h" }));
    const reservation = await limiter.reserve("a", 4);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
    await reservation.settle(3);
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
    await limiter.reset("a");
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
  });

  it("is forgotten where rules count by parts of a key, and limiters of one name share counts", async () => {
    const { process } = stage();
    const limiter = process([
      slidingLog({ name: "user", by: ["user"], limit: 1, window: "1h" }),
      slidingLog({ name: "ip", by: ["ip"], limit: 9, window: "1h" }),
    ]);
    await limiter.tryAcquire({ user: "1", ip: "x" });
    expect((await limiter.tryAcquire({ user: "1", ip: "x" })).rule).toBe("user");
    await limiter.reset({ user: "1", ip: "y" });
    expect((await limiter.tryAcquire({ user: "1", ip: "x" })).allowed).toBe(true);
  });

  it("is not believed when something was given back while it was asked for", async () => {
    const { gate, process } = stage();
    const limiter = process(slidingLog({ limit: 1, window: "1h" }));
    const reservation = await limiter.reserve("a", 1);
    let open = () => {};
    gate.open = new Promise((resolve) => {
      open = () => resolve();
    });
    const refused = limiter.tryAcquire("a");
    await Promise.resolve();
    await reservation.cancel();
    open();
    expect((await refused).allowed).toBe(false);
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
  });

  it("outlives another process's reset by staleMs at most", async () => {
    const { clock, process } = stage({ staleMs: 300 });
    const rules = slidingLog({ limit: 1, window: "1h" });
    const [here, there] = [process(rules), process(rules)];
    await take(here, "a", 2);
    await there.reset("a");
    expect((await here.tryAcquire("a")).allowed).toBe(false);
    clock.now += 300;
    expect((await here.tryAcquire("a")).allowed).toBe(true);
  });

  it("is remembered of maxKeys keys, those that were used last", async () => {
    const { asked, process } = stage({ maxKeys: 100 });
    const limiter = process(slidingLog({ limit: 1, window: "1h" }));
    for (let n = 0; n < 1000; n++) await take(limiter, `key ${n}`, 2);
    asked.length = 0;
    for (let n = 999; n >= 900; n--) await limiter.tryAcquire(`key ${n}`);
    expect(asked.length).toBe(0);
    for (let n = 0; n < 900; n++) await limiter.tryAcquire(`key ${n}`);
    expect(asked.length).toBe(900);
  });

  it("by an outage's policy is not remembered", async () => {
    const { counted, asked } = stage();
    const failing: Store = { ...counted, decide: async () => Promise.reject(new Error("down")) };
    const store = tiered(resilient(failing, { onOutage: "closed" }));
    const limiter = createLimiter({ store, rules: slidingLog({ limit: 1, window: "1h" }) });
    expect(await limiter.tryAcquire("a")).toMatchObject({ allowed: false, degraded: "closed" });
    failing.decide = counted.decide;
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect(asked.length).toBe(1);
  });
});

/** A thousand per ten seconds: leases live for 40 ms. */
const LOG = slidingLog({ limit: 1000, window: 10_000 });
const leased = (rules: RuleInput | RuleInput[] = LOG, wrap = (store: Store) => store) => {
  const set = stage({ leases: true }, wrap);
  return { ...set, limiter: set.process(rules) };
};

/** Calls until the key is hot and this process holds a lease. */
async function warmUp(limiter: Limiter): Promise<void> {
  await take(limiter, "a", 12);
}

describe("a lease", () => {
  it("answers a hot key's calls without asking for each, and is counted in full", async () => {
    const { asked, limiter } = leased();
    const decisions = await take(limiter, "a", 100);
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    expect(asked.length).toBeLessThan(10);
    const taken = asked.reduce((sum, cost) => sum + cost);
    expect((await limiter.status("a"))[0].count).toBe(taken);
  });

  it("gives back what was not spent, once its life is over", async () => {
    const { limiter, pass } = leased();
    await take(limiter, "a", 100);
    await pass(39);
    expect((await limiter.status("a"))[0].count).toBeGreaterThan(100);
    await pass(2);
    expect((await limiter.status("a"))[0].count).toBe(100);
  });

  it("is spent for as long as the window is stretched", async () => {
    const { asked, clock, limiter } = leased();
    await take(limiter, "a", 50);
    const before = asked.length;
    clock.now += 39;
    await limiter.tryAcquire("a");
    const isSpent = asked.length === before;
    clock.now += 2;
    await limiter.tryAcquire("a");
    expect({ isSpent, isOver: asked.length > before }).toEqual({ isSpent: true, isOver: true });
  });

  it("whose answer is late is shorter by that, and over when its life is", async () => {
    for (const [lateMs, isSpentHere] of [
      [38, true],
      [41, false],
    ] as const) {
      const { asked, clock, gate, limiter } = leased();
      const warm = Array.from({ length: 20 }, () => limiter.tryAcquire("a"));
      await Promise.all(warm);
      await take(limiter, "a", 200);
      clock.now += 41;
      let open = () => {};
      gate.open = new Promise((resolve) => {
        open = () => resolve();
      });
      const asking = limiter.tryAcquire("a");
      await Promise.resolve();
      clock.now += lateMs;
      open();
      expect((await asking).allowed).toBe(true);
      const before = asked.length;
      expect((await limiter.tryAcquire("a")).allowed).toBe(true);
      expect(asked.length === before).toBe(isSpentHere);
    }
  });

  it("of cells is not spent beyond the cell it was charged to", async () => {
    // 60 cells of 167 ms, and leases of up to 40 ms.
    const { asked, clock, limiter } = leased(slidingCells({ limit: 1000, window: 10_000 }));
    clock.now = Math.ceil(START / 167) * 167 + 150;
    await take(limiter, "a", 50);
    const before = asked.length;
    clock.now += 15;
    await limiter.tryAcquire("a");
    expect(asked.length).toBe(before);
    clock.now += 2;
    await limiter.tryAcquire("a");
    expect(asked.length).toBeGreaterThan(before);
  });

  it("is not spent after a reset, nor given back", async () => {
    const { asked, limiter, pass } = leased();
    await warmUp(limiter);
    await limiter.reset("a");
    const before = asked.length;
    await limiter.tryAcquire("a");
    expect(asked.length).toBe(before + 1);
    await pass(100);
    expect((await limiter.status("a"))[0].count).toBe(1);
  });

  it("is what a reservation is settled against", async () => {
    const { limiter, pass } = leased();
    await warmUp(limiter);
    const reservation = await limiter.reserve("a", 2);
    await reservation.settle(5);
    await (await limiter.reserve("a", 2)).cancel();
    await pass(100);
    expect((await limiter.status("a"))[0].count).toBe(17);
  });

  it("shows in a peek, which takes nothing of it", async () => {
    const { asked, limiter } = leased();
    await warmUp(limiter);
    const before = asked.length;
    const { remaining } = await limiter.peek("a");
    expect((await limiter.peek("a")).remaining).toBe(remaining);
    expect((await limiter.tryAcquire("a")).remaining).toBe(remaining - 1);
    expect(asked.length).toBe(before);
  });

  it("is given back when the store is closed", async () => {
    const { memory, process } = stage({ leases: true });
    const store = tiered(remotely(memory), { leases: true });
    const limiter = createLimiter({ name: "test", store, rules: LOG });
    await take(limiter, "a", 50);
    await limiter.close();
    const closed = vi.spyOn(memory, "close").mockImplementation(() => {});
    await store.close();
    expect(closed).toHaveBeenCalledOnce();
    expect((await process(LOG).status("a"))[0].count).toBe(50);
  });

  it("is never of rules that shape traffic, that keep each request, or that are small", async () => {
    for (const rules of [
      tokenBucket({ limit: 1000, window: 10_000 }),
      leakyBucket({ limit: 1000, window: 10_000, burst: 100 }),
      slidingLog({ limit: 1000, window: 10_000, layout: "zset" }),
      slidingLog({ limit: 19, window: 10_000 }),
      slidingLog({ limit: 1000, window: 400 }),
      [LOG, tokenBucket({ name: "bucket", limit: 1000, window: 10_000 })],
    ]) {
      const { asked, limiter } = leased(rules);
      await take(limiter, "a", 15);
      expect(asked).toEqual(Array(15).fill(1));
    }
  });

  it("is taken for calls of the same tick together, in the order they came", async () => {
    const { asked, limiter } = leased();
    await warmUp(limiter);
    const decisions = await Promise.all(Array.from({ length: 500 }, () => limiter.tryAcquire("a")));
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(500);
    expect(asked.length).toBeLessThan(30);
    const more = await Promise.all(Array.from({ length: 800 }, () => limiter.tryAcquire("a")));
    expect(more.filter(({ allowed }) => allowed).length).toBe(1000 - 512);
    expect(more.findLastIndex(({ allowed }) => allowed)).toBe(1000 - 512 - 1);
  });

  it("is not made of what a policy admits in an outage", async () => {
    let isOut = false;
    const { asked, limiter } = leased(LOG, (store) => {
      const failing: Store = {
        ...store,
        decide: (charges, commit) =>
          isOut ? Promise.reject(new Error("down")) : store.decide(charges, commit),
      };
      return resilient(failing, { onOutage: "local", instances: 10 });
    });
    await take(limiter, "a", 5);
    isOut = true;
    const decisions = await take(limiter, "b", 150);
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(100);
    expect(decisions.every(({ degraded }) => degraded === "local")).toBe(true);
    expect(asked.length).toBeLessThan(6);
  });

  it("that fails to come fails all who wait for it, and the next call asks again", async () => {
    const { counted, limiter } = leased();
    await warmUp(limiter);
    const decide = vi.spyOn(counted, "decide").mockRejectedValueOnce(new Error("down"));
    const calls = await Promise.allSettled(Array.from({ length: 20 }, () => limiter.tryAcquire("b")));
    expect(calls.some(({ status }) => status === "rejected")).toBe(true);
    decide.mockRestore();
    expect((await limiter.tryAcquire("b")).allowed).toBe(true);
  });

  it("of a key that makes room for others is given back", async () => {
    const set = stage({ leases: true, maxKeys: 1 });
    const limiter = set.process(LOG);
    await take(limiter, "a", 100);
    for (let n = 0; n < 10; n++) await limiter.tryAcquire(`other ${n}`);
    await set.pass(0);
    expect((await limiter.status("a"))[0].count).toBe(100);
  });
});

it.each([
  [{ leases: 1 }, "leases must be true or false; got 1."],
  [{ staleMs: 0 }, "staleMs must be a whole number of at least 1"],
  [{ maxKeys: 0 }, "maxKeys must be a whole number from 1 to 10000000; got 0."],
  [{ clock: 5 }, "clock must be a function that returns milliseconds; got 5."],
])("refuses the options %j", (options, message) => {
  const creating = () => tiered(memoryStore(), options as unknown as TieredOptions);
  expect(creating).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  expect(creating).toThrow(message);
});
