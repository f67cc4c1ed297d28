import assert from "node:assert/strict";
import fc from "fast-check";
import { slidingLog } from "../../rule.js";
import type { Suite } from "../suite.js";
import { fill, START } from "../world.js";
import { sampleRules } from "./samples.js";

/** What the passing of time does, and does not. */
export function lawsOfTime({ describe, test }: Suite): void {
  describe("law 0: a request counts while now - t < window, and no longer", () => {
    for (const window of [1, 7, 1000, 86_400_000, 2 ** 31 + 5]) {
      test(`in a log of ${window} ms`, async (world) => {
        const limiter = world.limiter(slidingLog({ limit: 3, window }));
        assert.equal(await fill(limiter, "a"), 3);
        world.clock.now += window - 1;
        assert.equal((await limiter.tryAcquire("a")).allowed, false);
        world.clock.now += 1;
        assert.equal(await fill(limiter, "a"), 3);
      });
    }

    test("each request leaves at its own time", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 2, window: 1000 }));
      await limiter.tryAcquire("a");
      world.clock.now += 300;
      await limiter.tryAcquire("a");
      const counts = [];
      for (const at of [999, 1000, 1299, 1300]) {
        world.clock.now = START + at;
        counts.push((await limiter.status("a"))[0].count);
      }
      assert.deepEqual(counts, [2, 1, 1, 0]);
    });
  });

  describe("law 4: retryAfterMs is true, to the millisecond", () => {
    for (const [name, rule] of sampleRules(10, 997)) {
      test(name, async (world) => {
        const limiter = world.limiter(rule);
        const calls = fc.array(fc.tuple(fc.nat({ max: 400 }), fc.integer({ min: 1, max: 4 })), {
          minLength: 1,
          maxLength: 30,
        });
        let run = 0;
        await fc.assert(
          fc.asyncProperty(calls, async (gapsAndCosts) => {
            run++;
            for (const [gap, cost] of gapsAndCosts) {
              world.clock.now += gap;
              const { allowed, retryAfterMs } = await limiter.tryAcquire(`key ${run}`, cost);
              if (allowed) continue;
              if (retryAfterMs === Infinity) {
                assert.ok(cost > (rule.burst ?? rule.limit));
                continue;
              }
              world.clock.now += retryAfterMs - 1;
              assert.equal((await limiter.peek(`key ${run}`, cost)).allowed, false, "admitted too early");
              world.clock.now += 1;
              assert.equal((await limiter.tryAcquire(`key ${run}`, cost)).allowed, true, "told too early");
            }
          }),
          { numRuns: 40 },
        );
      });
    }

    test("is 0 when allowed and Infinity when the cost can never fit", async (world) => {
      for (const [name, rule] of sampleRules(10, 1000)) {
        const limiter = world.limiter(rule);
        assert.equal((await limiter.tryAcquire("a")).retryAfterMs, 0, name);
        assert.equal((await limiter.tryAcquire("a", 11)).retryAfterMs, Infinity, name);
      }
    });

    test("of several rules is the longest", async (world) => {
      const limiter = world.limiter([
        slidingLog({ name: "second", limit: 2, window: "1s" }),
        slidingLog({ name: "minute", limit: 3, window: "1m" }),
      ]);
      await limiter.tryAcquire("a");
      world.clock.now += 1000;
      await limiter.tryAcquire("a", 2);
      const { rule, retryAfterMs } = await limiter.tryAcquire("a");
      assert.deepEqual({ rule, retryAfterMs }, { rule: "minute", retryAfterMs: 59_000 });
    });
  });

  describe("law 5: state that has expired equals no state", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(name, async (world) => {
        const limiter = world.limiter(rule);
        await fill(limiter, "used");
        const { resetAfterMs } = await limiter.peek("used");
        world.clock.now += resetAfterMs - 1;
        assert.ok((await limiter.status("used"))[0].count > 0, "counts to the last millisecond");
        for (const later of [1, 0, 1000, 1_000_000_000]) {
          world.clock.now += later;
          assert.deepEqual(await limiter.status("used"), await limiter.status("unused"));
          assert.deepEqual(await limiter.peek("used", 2), await limiter.peek("unused", 2));
        }
      });
    }
  });

  describe("law 7: a clock that jumps back grants nothing", () => {
    for (const [name, rule] of sampleRules(10, 1000)) {
      test(name, async (world) => {
        const limiter = world.limiter(rule);
        world.clock.now += 123;
        await fill(limiter, "a");
        const fullAt = world.clock.now;
        const { retryAfterMs } = await limiter.peek("a");
        for (const back of [1, 122, 500, 1000, 100_000]) {
          world.clock.now = fullAt - back;
          assert.equal((await limiter.tryAcquire("a")).allowed, false, `${back} ms back`);
          world.clock.now += (await limiter.peek("a")).retryAfterMs - 1;
          assert.equal(
            (await limiter.peek("a")).allowed,
            false,
            `retryAfterMs was too short, ${back} ms back`,
          );
        }
        world.clock.now = fullAt + retryAfterMs;
        assert.equal((await limiter.tryAcquire("a")).allowed, true);
      });
    }

    test("what a fast clock admitted counts on when the clock is set right", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 5, window: 1000 }));
      world.clock.now += 60_000;
      await fill(limiter, "a");
      world.clock.now -= 60_000;
      assert.equal(await fill(limiter, "a"), 0);
      assert.equal((await limiter.peek("a")).retryAfterMs, 61_000);
    });
  });
}
