import assert from "node:assert/strict";
import {
  fixedWindow,
  leakyBucket,
  type Rule,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "../../rule.js";
import type { Suite } from "../suite.js";
import { ask, type World } from "../world.js";
import { ADVERSARIES, type Attempt, countIn, mostInAnyWindow } from "./adversaries.js";

const LIMIT = 20;
const WINDOW = 1000;
const CELLS = 7;
const CELL = Math.ceil(WINDOW / CELLS);
const BURST = 5;
const common = { limit: LIMIT, window: WINDOW };

/** The most that may pass in any window, and why. */
const BOUNDS: readonly (readonly [string, Rule, number])[] = [
  ["slidingLog never admits over the limit", slidingLog(common), LIMIT],
  ["strict slidingCells never admit over the limit", slidingCells({ ...common, cells: CELLS }), LIMIT],
  // Interpolation hides at most what the oldest cell holds, and a cell holds at most the limit.
  [
    "weighted slidingCells admit at most twice the limit",
    slidingCells({ ...common, cells: CELLS, mode: "weighted" }),
    2 * LIMIT,
  ],
  ["slidingCounter admits at most twice the limit", slidingCounter(common), 2 * LIMIT],
  ["fixedWindow admits at most twice the limit", fixedWindow(common), 2 * LIMIT],
  ["tokenBucket admits at most burst + limit", tokenBucket({ ...common, burst: BURST }), BURST + LIMIT],
  ["leakyBucket admits at most burst + limit", leakyBucket(common), 1 + LIMIT],
];

/** Law 10: each algorithm keeps its promise when traffic is out to break it. */
export function lawOfGuarantees({ describe, test }: Suite): void {
  describe("law 10: each algorithm keeps its guarantee on adversarial traffic", () => {
    for (const [promise, rule, most] of BOUNDS) {
      test(promise, async (world) => {
        for (const [adversary, admitted] of await attacks(world, rule)) {
          const worst = mostInAnyWindow(admitted, WINDOW);
          assert.ok(worst <= most, `${worst} of at most ${most} in a window: ${adversary}`);
        }
      });
    }

    test("weighted slidingCells admit at most the limit and one cell's count", async (world) => {
      const rule = slidingCells({ ...common, cells: CELLS, mode: "weighted" });
      for (const [adversary, admitted] of await attacks(world, rule)) {
        for (const { at } of admitted) {
          const oldest = Math.floor((at - WINDOW + 1) / CELL) * CELL;
          const hidden = countIn(admitted, CELL, oldest + CELL - 1);
          const worst = countIn(admitted, WINDOW, at);
          assert.ok(worst <= LIMIT + hidden, `${worst} in a window: ${adversary}`);
        }
      }
    });

    test("slidingLog never refuses while there is room", async (world) => {
      for (const [adversary, admitted, refused] of await attacks(world, slidingLog(common))) {
        for (const { at, cost } of refused) {
          const inWindow = countIn(admitted, WINDOW, at);
          assert.ok(inWindow + cost > LIMIT, `refused ${cost} at ${inWindow} of ${LIMIT}: ${adversary}`);
        }
      }
    });

    test("strict slidingCells refuse only what a window and one cell would not hold", async (world) => {
      const rule = slidingCells({ ...common, cells: CELLS });
      for (const [adversary, admitted, refused] of await attacks(world, rule)) {
        for (const { at, cost } of refused) {
          const inWindowAndCell = countIn(admitted, WINDOW + CELL - 1, at);
          assert.ok(inWindowAndCell + cost > LIMIT, `refused ${cost} at ${inWindowAndCell}: ${adversary}`);
        }
      }
    });

    test("leakyBucket spaces requests at least window / limit apart", async (world) => {
      for (const limit of [20, 7, 600]) {
        for (const [adversary, admitted] of await attacks(world, leakyBucket({ limit, window: WINDOW }))) {
          for (let n = 1; n < admitted.length; n++) {
            const gap = admitted[n].at - admitted[n - 1].at;
            assert.ok(gap * limit >= WINDOW, `${gap} ms apart: ${adversary}`);
          }
        }
      }
    });

    test("a burst at a window's start, one window later, is admitted in full again", async (world) => {
      const limiter = world.limiter(slidingLog({ limit: 100, window: WINDOW }));
      assert.equal((await limiter.tryAcquire("a", 100)).allowed, true);
      world.clock.now += WINDOW;
      assert.equal((await limiter.tryAcquire("a", 100)).allowed, true);
    });

    test("the bounds of the approximate are no larger than they need to be", async (world) => {
      const worst = async (rule: Rule) => {
        const all = await attacks(world, rule);
        return Math.max(...all.map(([, admitted]) => mostInAnyWindow(admitted, WINDOW)));
      };
      assert.equal(await worst(fixedWindow(common)), 2 * LIMIT);
      assert.equal(await worst(slidingCounter(common)), 2 * LIMIT - 1);
      assert.equal(await worst(slidingCells({ ...common, cells: CELLS, mode: "weighted" })), 2 * LIMIT - 1);
      assert.equal(await worst(tokenBucket({ ...common, burst: BURST })), BURST + LIMIT - 1);
    });
  });
}

type Attack = readonly [adversary: string, admitted: Attempt[], refused: Attempt[]];

/** Every adversary against the rule, each on a key of its own. Times are those of the clock. */
async function attacks(world: World, rule: Rule): Promise<Attack[]> {
  const limiter = world.limiter(rule);
  const results: Attack[] = [];
  for (const [adversary, attempts] of Object.entries(ADVERSARIES)) {
    const boundary = Math.ceil(world.clock.now / (WINDOW * CELL)) * WINDOW * CELL;
    const admitted: Attempt[] = [];
    const refused: Attempt[] = [];
    for (const { at, cost } of attempts(LIMIT, WINDOW)) {
      world.clock.now = boundary + at;
      const { allowed } = await ask(world, limiter, adversary, cost);
      (allowed ? admitted : refused).push({ at: boundary + at, cost });
    }
    results.push([adversary, admitted, refused]);
  }
  return results;
}
