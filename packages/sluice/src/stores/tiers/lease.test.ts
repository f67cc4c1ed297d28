import { describe, expect, it, vi } from "vitest";
import { stage, take } from "../../../test/tierStage.js";
import { createLimiter, type Limiter } from "../../limiter.js";
import { leakyBucket, type RuleInput, slidingCells, slidingLog, tokenBucket } from "../../rule.js";
import type { Store } from "../../store.js";
import { remotely } from "../../testing/remotely.js";
import { START } from "../../testing/world.js";
import { resilient } from "../resilient.js";
import { tiered } from "../tiered.js";

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

  it("of several rules is charged to all of them, or to none", async () => {
    const narrow = slidingCells({ name: "narrow", limit: 150, window: 20_000 });
    const { asked, limiter, pass } = leased([LOG, narrow]);
    const decisions = await take(limiter, "a", 400);
    expect(decisions.filter(({ allowed }) => allowed).length).toBe(150);
    expect(decisions.at(-1)?.rule).toBe("narrow");
    expect(asked.length).toBeLessThan(60);
    await pass(100);
    expect((await limiter.status("a")).map(({ count }) => count)).toEqual([150, 150]);
  });

  it("of a full key is taken once in a while, and what is left to others is little", async () => {
    const { asked, limiter, pass } = leased();
    for (let n = 0; n < 100; n++) {
      await take(limiter, "a", 10);
      await pass(100);
    }
    // From here on ten are free again every 100 ms, and 1000 are asked for.
    asked.length = 0;
    let admitted = 0;
    for (let n = 0; n < 10_000; n++) {
      if ((await limiter.tryAcquire("a")).allowed) admitted++;
      if (n % 10 === 0) await pass(1);
    }
    expect(asked.length).toBeLessThan(100);
    expect(admitted).toBeGreaterThan(80);
    expect((await limiter.status("a"))[0].count).toBeGreaterThan(980);
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
