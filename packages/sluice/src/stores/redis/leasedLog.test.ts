// Logs with a lease that are large enough to have chunks: the conformance suite's traces have few of them.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, test } from "vitest";
import { useRedis } from "../../../test/useRedis.js";
import { rule } from "../../rule.js";
import { Trace } from "../../testing/trace.js";
import { inWorld, START } from "../../testing/world.js";
import { redisStore } from "./index.js";

const { redis } = useRedis();

describe("a log with a lease", () => {
  test.concurrent.each([
    // A chunk is full, or ends with an entry that is too late or too costly for its width.
    { limit: 300, window: "1m", lease: "50s" },
    { limit: 300, window: "1h", lease: "1s" },
    { limit: 100_000, window: "1h", lease: "59m" },
    { limit: 100_000, window: "1d", lease: "5h" },
    { limit: 1_000_000, window: "30d", lease: "6h" },
    { limit: 40, window: "30d", lease: "29d" },
  ] as const)("answers as the naive model does: %j", async (options) => {
    const rules = [rule({ algorithm: "slidingLog", ...options })];
    const createStore = ({ clock }: { clock: () => number }) =>
      redisStore(redis, { prefix: `${randomUUID()}:`, clock });
    const codes = fc.array(fc.nat(), { minLength: 300, maxLength: 600, size: "max" });
    const property = fc.asyncProperty(codes, (codes) =>
      inWorld({ createStore }, (world) =>
        new Trace(world, { rules, keys: ["a"], startAt: START }).play(codes),
      ),
    );
    await fc.assert(property, { numRuns: 6, seed: 20_261_115, unbiased: true, endOnFailure: true });
  });
});
