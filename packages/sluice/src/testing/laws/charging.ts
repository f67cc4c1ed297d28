import assert from "node:assert/strict";
import type { Decision } from "../../decision.js";
import { capacity, fixedWindow, slidingLog } from "../../rule.js";
import type { Suite } from "../suite.js";
import { ask, fill } from "../world.js";
import { sampleRules } from "./samples.js";

/** What is charged, by which calls, and by which not. */
export function lawsOfCharging({ describe, test }: Suite): void {
  describe("law 1: a denial is a value", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(name, async (world) => {
        const limiter = world.limiter(rule);
        await fill(limiter, "a");
        for (const cost of [1, capacity(rule), Number.MAX_SAFE_INTEGER]) {
          assert.equal((await limiter.tryAcquire("a", cost)).allowed, false);
          assert.equal((await limiter.reserve("a", cost)).decision.allowed, false);
        }
      });
    }
  });

  describe("law 2: a denied, peeked or oversize call changes nothing", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(name, async (world) => {
        const limiter = world.limiter(rule);
        const most = capacity(rule);
        for (const key of ["disturbed", "left alone"]) await limiter.tryAcquire(key, most - 1);
        for (let n = 0; n < 20; n++) {
          world.clock.now += 3;
          assert.equal((await limiter.tryAcquire("disturbed", most)).allowed, false);
          assert.equal((await limiter.tryAcquire("disturbed", most + 1)).allowed, false);
          await limiter.peek("disturbed");
          await limiter.tryAcquire("disturbed", 0);
          assert.deepEqual(await limiter.status("disturbed"), await limiter.status("left alone"));
        }
        assert.deepEqual(await limiter.tryAcquire("disturbed"), await limiter.tryAcquire("left alone"));
      });
    }

    test("a charge that only looks must fit, and takes nothing", async (world) => {
      for (const [name, rule] of sampleRules(10, 1000)) {
        const most = capacity(rule);
        const place = (path: string) => ({ rule: { ...rule, path }, key: "a", partition: "a" });
        const [taken, looked] = [place(`${name} taken/rule`), place(`${name} looked/rule`)];
        const ask = async () => {
          const charges = [
            { ...taken, cost: 1, id: crypto.randomUUID() },
            { ...looked, cost: most, look: true },
          ];
          const decisions = await world.store.decide(charges, true);
          return decisions.map(({ allowed }) => allowed);
        };
        assert.deepEqual(await ask(), [true, true], name);
        assert.deepEqual(await ask(), [true, true], name);
        assert.deepEqual((await world.store.status([{ ...looked, cost: 0 }]))[0].count, 0, name);
        await world.store.decide([{ ...looked, cost: 1, id: "other" }], true);
        assert.deepEqual(await ask(), [true, false], name);
        assert.deepEqual((await world.store.status([{ ...taken, cost: 0 }]))[0].count, 2, name);
      }
    });

    test("a refused heavy cost leaves room for a light one", async (world) => {
      for (const [name, rule] of sampleRules(12, 1000)) {
        const limiter = world.limiter(rule);
        const most = capacity(rule);
        await limiter.tryAcquire("a", most - 1);
        assert.equal((await limiter.tryAcquire("a", 2)).allowed, false, name);
        assert.equal((await limiter.tryAcquire("a", 1000)).allowed, false, name);
        assert.equal((await limiter.tryAcquire("a", 1)).allowed, true, name);
      }
    });

    test("blocked calls do not prolong the block", async (world) => {
      for (const [name, rule] of sampleRules(10, 1000)) {
        const limiter = world.limiter(rule);
        await fill(limiter, "a");
        const opensAt = world.clock.now + (await limiter.peek("a")).retryAfterMs;
        while (world.clock.now < opensAt) {
          assert.equal((await limiter.tryAcquire("a")).allowed, false, name);
          world.clock.now += Math.min(50, opensAt - world.clock.now);
        }
        assert.equal((await limiter.tryAcquire("a")).allowed, true, name);
      }
    });
  });

  describe("law 3: all rules of a limiter are charged, or none", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(`${name} keeps its room when another rule refuses`, async (world) => {
        const narrow = { ...slidingLog({ limit: 1, window: 60_000 }), name: "narrow" };
        const orders = [
          [rule, narrow],
          [narrow, rule],
        ];
        for (const rules of orders) {
          const limiter = world.limiter(rules);
          assert.equal((await limiter.tryAcquire("a")).allowed, true);
          const before = await limiter.status("a");
          for (let n = 0; n < 20; n++) {
            const decision = await limiter.tryAcquire("a");
            assert.deepEqual([decision.allowed, decision.rule], [false, "narrow"]);
          }
          assert.deepEqual(await limiter.status("a"), before);
        }
      });
    }

    test("rules that count by different parts of the key too", async (world) => {
      const limiter = world.limiter([
        slidingLog({ name: "user", by: ["user"], limit: 5, window: 1000 }),
        fixedWindow({ name: "ip", by: ["ip"], limit: 2, window: 1000 }),
      ]);
      assert.equal(await fill(limiter, { user: "1", ip: "x" }), 2);
      assert.equal(await fill(limiter, { user: "2", ip: "x" }), 0);
      assert.equal(await fill(limiter, { user: "1", ip: "y" }), 2);
      const counts = await limiter.status({ user: "2", ip: "z" });
      assert.deepEqual(
        counts.map(({ count }) => count),
        [0, 0],
      );
    });
  });

  describe("law 8: clients in parallel admit exactly the limit", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(name, async (world) => {
        const clients = Array.from({ length: 8 }, () => world.limiter(rule, "shared"));
        const calls: Promise<Decision>[] = [];
        for (let n = 0; n < 10; n++) {
          for (const client of clients) calls.push(client.tryAcquire("a"));
        }
        const admitted = (await Promise.all(calls)).filter(({ allowed }) => allowed);
        assert.equal(admitted.length, capacity(rule));
      });
    }
  });

  describe("law 9: a decision costs the same whatever the weight and the limit", () => {
    for (const [name, rule] of sampleRules(1_000_000_000_000, 1000)) {
      test(`${name} counts a hundred thousand million at once`, async (world) => {
        const limiter = world.limiter(rule);
        const most = capacity(rule);
        const tenth = Math.floor(most / 10);
        for (let n = 0; n < 10; n++) assert.equal((await ask(world, limiter, "a", tenth)).allowed, true);
        const { remaining } = await limiter.peek("a");
        assert.equal(remaining, most - 10 * tenth);
        assert.equal((await limiter.tryAcquire("a", tenth)).allowed, false);
      });
    }
  });
}
