import assert from "node:assert/strict";
import { SluiceError } from "../../errors.js";
import type { Key } from "../../key.js";
import { slidingLog } from "../../rule.js";
import type { Suite } from "../suite.js";
import { fill } from "../world.js";
import { sampleRules } from "./samples.js";

/** What is refused before anything is charged, and which keys are which. */
export function lawsOfInput({ describe, test }: Suite): void {
  describe("law 11: bad input is refused before anything is charged", () => {
    test("costs that are no whole number from 0 on", async (world) => {
      for (const [name, rule] of sampleRules(10, 1000)) {
        const limiter = world.limiter(rule);
        await limiter.tryAcquire("a");
        const before = await limiter.status("a");
        for (const cost of [Number.NaN, -1, 0.5, Infinity, 2 ** 53, "1", null, {}]) {
          for (const verb of ["tryAcquire", "peek", "reserve"] as const) {
            const call = limiter[verb]("a", cost as number);
            await assert.rejects(call, hasCode("INVALID_COST"), `${name}: ${verb} of ${String(cost)}`);
          }
        }
        assert.deepEqual(await limiter.status("a"), before);
      }
    });

    test("keys that are empty, over-long or no key", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 1, window: 1000 }));
      for (const key of [
        "",
        "x".repeat(16_385),
        undefined,
        7,
        null,
        [],
        { user: "" },
        { user: Number.NaN },
      ]) {
        await assert.rejects(limiter.tryAcquire(key as Key), hasCode("INVALID_KEY"), String(key));
      }
      assert.equal((await limiter.tryAcquire("x".repeat(16_384))).allowed, true);
    });

    test("a settlement that is no cost, which leaves the reservation open", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 10, window: 1000 }));
      const reservation = await limiter.reserve("a", 4);
      for (const actual of [Number.NaN, -1, 0.5, Infinity]) {
        await assert.rejects(reservation.settle(actual), hasCode("INVALID_COST"));
      }
      await reservation.settle(1);
      assert.equal((await limiter.peek("a")).remaining, 9);
    });
  });

  describe("different keys never share a count", () => {
    test("whatever they are made of", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 2, window: 1000 }));
      const keys = [
        "a",
        "A",
        " a",
        "a ",
        "a\n",
        "a:b",
        "a:b:",
        "a/b",
        "{a}",
        "{a}b",
        "a*",
        "*",
        "?",
        "[a]",
        "%61",
      ];
      keys.push("a\0", "\0a", "é", "e\u0301", "😀", "__proto__", "constructor", "0", "00", "a=b", "a&b");
      for (const key of keys) {
        assert.equal(
          await fill(limiter, key),
          2,
          `key ${JSON.stringify(key)} was counted before it was used`,
        );
      }
    });

    test("nor do limiters and rules of different names", async (world) => {
      const rule = (name: string) => slidingLog({ name, limit: 2, window: 1000 });
      for (const [limiter, name, key] of [
        ["a", "b", "c"],
        ["a:b", "b", "c"],
        ["a", "b:c", "c"],
        ["a", "b", "b:c"],
        ["a", "c", "b"],
        ["b", "a", "c"],
      ] as const) {
        assert.equal(await fill(world.limiter(rule(name), limiter), key), 2, [limiter, name, key].join(" "));
      }
    });

    test("and a reset forgets one key, not a pattern of them", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 2, window: 1000 }));
      const keys = ["a", "ab", "b", "*", "a*"];
      for (const key of keys) await fill(limiter, key);
      await limiter.reset("*");
      await limiter.reset("a*");
      const admitted = [];
      for (const key of keys) admitted.push(await fill(limiter, key));
      assert.deepEqual(admitted, [0, 0, 0, 2, 2]);
    });
  });
}

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof SluiceError && error.code === code;
}
