import assert from "node:assert/strict";
import { capacity } from "../../rule.js";
import type { Suite } from "../suite.js";
import { fill } from "../world.js";
import { sampleRules } from "./samples.js";

/** What a reservation takes, gives back and owes. */
export function lawsOfSettling({ describe, test }: Suite): void {
  describe("a reservation is settled at its own time", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      const most = capacity(rule);

      test(`${name}: a cancelled one never was`, async (world) => {
        const limiter = world.limiter(rule);
        const reservation = await limiter.reserve("a", most);
        await reservation.cancel();
        assert.deepEqual(await limiter.status("a"), await limiter.status("untouched"));
      });

      if (rule.algorithm === "concurrent") continue; // whose slots are given back whole: see leases.ts

      test(`${name}: what was not used is free at once`, async (world) => {
        const limiter = world.limiter(rule);
        const reservation = await limiter.reserve("a", most);
        await reservation.settle(1);
        assert.equal(await fill(limiter, "a"), most - 1);
      });

      test(`${name}: more than was taken becomes a debt`, async (world) => {
        const limiter = world.limiter(rule);
        const reservation = await limiter.reserve("a", 1);
        await reservation.settle(most + 2);
        const [{ count, remaining }] = await limiter.status("a");
        assert.deepEqual({ count, remaining }, { count: most + 2, remaining: 0 });
        const { retryAfterMs } = await limiter.peek("a");
        world.clock.now += retryAfterMs - 1;
        assert.equal((await limiter.peek("a")).allowed, false);
        world.clock.now += 1;
        assert.equal((await limiter.peek("a")).allowed, true);
      });

      test(`${name}: a late one changes nothing`, async (world) => {
        const limiter = world.limiter(rule);
        const [up, down] = [await limiter.reserve("a", 1), await limiter.reserve("a", 1)];
        world.clock.now += (await limiter.peek("a")).resetAfterMs + 1000;
        await limiter.tryAcquire("a");
        const before = await limiter.status("a");
        await up.settle(2);
        await down.cancel();
        assert.deepEqual(await limiter.status("a"), before);
      });

      test(`${name}: one that was reset, settled when the clock stepped back before it, changes nothing`, async (world) => {
        const limiter = world.limiter(rule);
        world.clock.now += 5000;
        const [up, down] = [await limiter.reserve("a", 1), await limiter.reserve("a", 1)];
        await limiter.reset("a");
        world.clock.now -= 5000;
        await limiter.tryAcquire("a");
        const before = await limiter.status("a");
        await up.settle(3);
        await down.cancel();
        assert.deepEqual(await limiter.status("a"), before);
      });

      test(`${name}: giving back more than was taken leaves no more than the limit`, async (world) => {
        const charge = { rule: { ...rule, path: "own" }, key: "a", partition: "a", cost: most };
        const [{ at }] = await world.store.decide([charge], true);
        await world.store.settle([{ ...charge, cost: 100 * most, actual: 0, at }]);
        assert.equal((await world.store.status([charge]))[0].remaining, most);
        const limiter = world.limiter(rule);
        for (let n = 0; n < 3; n++) {
          const reservation = await limiter.reserve("b", 1);
          await Promise.all([reservation.cancel(), reservation.cancel(), reservation.settle(0)]);
          assert.equal((await limiter.peek("b")).remaining, most);
        }
      });
    }
  });
}
