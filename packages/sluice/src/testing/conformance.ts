import { lawsOfCharging } from "./laws/charging.js";
import { lawOfGuarantees } from "./laws/guarantees.js";
import { lawsOfInput } from "./laws/input.js";
import { lawsOfLeases } from "./laws/leases.js";
import { lawsOfSettling } from "./laws/settling.js";
import { lawsOfTime } from "./laws/time.js";
import { playTraces } from "./randomTraces.js";
import { ALGORITHMS } from "./scenario.js";
import { type Runner, suiteOf, TIMEOUT_MS } from "./suite.js";
import type { WorldOptions } from "./world.js";

/** What `conformance` takes: a test runner, and how to make the store. */
export interface ConformanceOptions extends Runner, WorldOptions {
  /** What the tests are listed under, such as "redisStore". */
  readonly name: string;
  /** How many random decisions to compare for each algorithm: 10,000 unless told. */
  readonly decisions?: number;
  /** Plays the random traces of a failed run again: the seed that it printed. */
  readonly seed?: number;
}

/**
 * The tests that every store passes: the laws, one by one, and every decision of random traces
 * against a naive model. All on virtual time, so they take as long as the store does and no longer.
 * A store whose state has a life of its own (time to live, eviction, connections) tests that besides.
 *
 * ```ts
 * import { conformance } from "sluice/testing";
 * import { describe, it } from "vitest"; // or "node:test", or jest's globals
 *
 * conformance({
 *   name: "myStore",
 *   describe,
 *   it,
 *   createStore: ({ clock }) => myStore(client, { prefix: randomUUID(), clock }),
 * });
 * ```
 */
export function conformance(options: ConformanceOptions): void {
  const { decisions = 10_000 } = options;
  options.describe(`${options.name} conforms`, () => {
    const suite = suiteOf(options, options);
    lawsOfTime(suite);
    lawsOfCharging(suite);
    lawsOfSettling(suite);
    lawsOfLeases(suite);
    lawsOfInput(suite);
    lawOfGuarantees(suite);
    options.describe("every decision of random traces is the naive model's", () => {
      for (const algorithm of ALGORITHMS) {
        options.it(algorithm, () => playTraces(options, algorithm, decisions), TIMEOUT_MS);
      }
      options.it("windows with a lease", () => playTraces(options, "leases", decisions), TIMEOUT_MS);
      options.it("several rules", () => playTraces(options, "several rules", decisions / 2), TIMEOUT_MS);
    });
  });
}
