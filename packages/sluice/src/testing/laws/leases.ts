import assert from "node:assert/strict";
import { concurrent, rule, slidingLog } from "../../rule.js";
import type { Suite } from "../suite.js";
import { fill } from "../world.js";

/** Who holds a slot, and for how long. */
export function lawsOfLeases({ describe, test }: Suite): void {
  describe("concurrent: each holder has a lease of its own", () => {
    const three = concurrent({ limit: 3, lease: 1000 });

    test("a slot is free at once when its holder is done, whatever is settled", async (world) => {
      const limiter = world.limiter(three);
      for (const actual of [0, 1, 2, 100]) {
        const holders = [await limiter.reserve("a", 1), await limiter.reserve("a", 1)];
        assert.equal((await limiter.peek("a")).remaining, 1);
        await holders[0].settle(actual);
        assert.equal((await limiter.peek("a")).remaining, 2);
        await holders[1].cancel();
        assert.equal((await limiter.peek("a")).remaining, 3);
      }
    });

    test("a crashed holder's slot returns at its lease's end, and no other's", async (world) => {
      const limiter = world.limiter(three);
      await limiter.reserve("a", 1);
      world.clock.now += 400;
      await limiter.reserve("a", 2);
      const { allowed, retryAfterMs } = await limiter.tryAcquire("a");
      assert.deepEqual({ allowed, retryAfterMs }, { allowed: false, retryAfterMs: 600 });
      world.clock.now += 599;
      assert.equal((await limiter.peek("a")).remaining, 0);
      world.clock.now += 1;
      assert.equal((await limiter.peek("a")).remaining, 1);
      world.clock.now += 400;
      assert.equal((await limiter.peek("a")).remaining, 3);
    });

    test("the wait is for the earliest leases that free enough", async (world) => {
      const limiter = world.limiter(concurrent({ limit: 10, lease: 1000 }));
      for (const slots of [1, 5, 1, 3]) {
        await limiter.reserve("a", slots);
        world.clock.now += 100;
      }
      const waits = [];
      for (const cost of [1, 2, 6, 7, 8, 10, 11]) waits.push((await limiter.peek("a", cost)).retryAfterMs);
      assert.deepEqual(waits, [600, 700, 700, 800, 900, 900, Infinity]);
    });

    test("a renewed lease begins anew", async (world) => {
      const limiter = world.limiter(three);
      const [renewed] = [await limiter.reserve("a", 2), await limiter.reserve("a", 1)];
      world.clock.now += 900;
      await renewed.renew();
      world.clock.now += 100;
      assert.equal((await limiter.peek("a")).remaining, 1);
      world.clock.now += 899;
      assert.equal((await limiter.peek("a", 2)).retryAfterMs, 1);
      world.clock.now += 1;
      assert.equal((await limiter.peek("a")).remaining, 3);
    });

    test("a lease that has ended cannot be renewed: its slot may be another's", async (world) => {
      const limiter = world.limiter(three);
      const late = await limiter.reserve("a", 3);
      world.clock.now += 1000;
      assert.equal(await fill(limiter, "a"), 3);
      await late.renew();
      await late.cancel();
      assert.equal((await limiter.peek("a")).remaining, 0);
      assert.equal((await limiter.status("a"))[0].count, 3);
    });

    test("only the slot is freed whose holder is done, and once", async (world) => {
      const limiter = world.limiter(three);
      const first = await limiter.reserve("a", 1);
      world.clock.now += 500;
      await limiter.reserve("a", 2);
      await Promise.all([first.cancel(), first.cancel(), first.settle(5)]);
      assert.equal((await limiter.peek("a")).remaining, 1);
      world.clock.now += 500;
      assert.equal((await limiter.peek("a")).remaining, 1, "the others' leases go on");
    });

    test("a renewal tells whether the lease was still there", async (world) => {
      const limiter = world.limiter(three);
      const reservation = await limiter.reserve("a", 2);
      assert.equal(await reservation.renew(), true);
      world.clock.now += 1000;
      assert.equal(await reservation.renew(), false);
      const settled = await limiter.reserve("a", 1);
      await settled.settle(1);
      assert.equal(await settled.renew(), false);
    });

    test("beside other rules: these count on what was settled", async (world) => {
      const limiter = world.limiter([
        { ...three, name: "parallel" },
        slidingLog({ name: "second", limit: 10, window: 1000 }),
      ]);
      const reservation = await limiter.reserve("a", 2);
      await reservation.settle(2);
      const counts = (await limiter.status("a")).map(({ count }) => count);
      assert.deepEqual(counts, [0, 2]);
    });
  });

  describe("a window with a lease holds what is reserved until it is settled", () => {
    const ten = rule({ algorithm: "slidingLog", limit: 10, window: 10_000, lease: 1000 });

    test("what a crashed holder held is there again at its lease's end, and not before", async (world) => {
      const limiter = world.limiter(ten);
      await limiter.reserve("a", 4);
      world.clock.now += 400;
      await limiter.reserve("a", 6);
      const waits = [];
      for (const cost of [1, 4, 5, 10]) waits.push((await limiter.peek("a", cost)).retryAfterMs);
      assert.deepEqual(waits, [600, 600, 1000, 1000]);
      world.clock.now += 599;
      assert.equal((await limiter.peek("a")).remaining, 0);
      world.clock.now += 1;
      assert.equal((await limiter.peek("a")).remaining, 4);
      world.clock.now += 400;
      assert.deepEqual(await limiter.status("a"), await limiter.status("untouched"));
    });

    test("what was settled counts for its window, from its reservation on", async (world) => {
      const limiter = world.limiter(ten);
      const reservation = await limiter.reserve("a", 4);
      world.clock.now += 900;
      await reservation.settle(4);
      world.clock.now += 9099;
      assert.equal((await limiter.status("a"))[0].count, 4);
      world.clock.now += 1;
      assert.equal((await limiter.status("a"))[0].count, 0);
    });

    test("the wait is for what ends first: leases, or what is in the window", async (world) => {
      const limiter = world.limiter(ten);
      await limiter.tryAcquire("a", 5);
      world.clock.now += 9500;
      await limiter.reserve("a", 2);
      world.clock.now += 100;
      await limiter.reserve("a", 2);
      const waits = [];
      for (const cost of [1, 2, 6, 7, 8, 9, 10, 11]) waits.push((await limiter.peek("a", cost)).retryAfterMs);
      assert.deepEqual(waits, [0, 400, 400, 900, 900, 1000, 1000, Infinity]);
    });

    test("settled late it is charged all the same, and never twice", async (world) => {
      const limiter = world.limiter(ten);
      const late = await limiter.reserve("a", 8);
      world.clock.now += 1000;
      await limiter.reserve("a", 10);
      await Promise.all([late.settle(3), late.cancel(), late.settle(5)]);
      assert.equal((await limiter.status("a"))[0].count, 13);
      world.clock.now += 1000;
      assert.equal((await limiter.status("a"))[0].count, 3);
    });

    test("a renewed lease begins anew, and ends with the window at the latest", async (world) => {
      const limiter = world.limiter(ten);
      const reservation = await limiter.reserve("a", 4);
      for (let n = 0; n < 11; n++) {
        world.clock.now += 900;
        assert.equal(await reservation.renew(), true);
        assert.equal((await limiter.status("a"))[0].count, 4);
      }
      assert.equal((await limiter.peek("a", 10)).retryAfterMs, 100);
      world.clock.now += 100;
      assert.equal((await limiter.status("a"))[0].count, 0);
      assert.equal(await reservation.renew(), true, "nothing was lost: its window is over");
      const lost = await limiter.reserve("a", 1);
      world.clock.now += 1000;
      assert.equal(await lost.renew(), false);
    });

    test("what is taken without a reservation counts for the window", async (world) => {
      const limiter = world.limiter(ten);
      await limiter.tryAcquire("a", 3);
      await limiter.acquire("a", { cost: 3 });
      world.clock.now += 9999;
      assert.equal((await limiter.status("a"))[0].count, 6);
    });

    test("a clock that steps back neither frees nor loses what is held", async (world) => {
      const limiter = world.limiter(ten);
      const reservation = await limiter.reserve("a", 10);
      world.clock.now -= 5000;
      assert.equal((await limiter.peek("a")).retryAfterMs, 6000);
      await reservation.settle(9);
      assert.equal((await limiter.status("a"))[0].count, 9);
    });
  });
}
