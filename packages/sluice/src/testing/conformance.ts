import assert from "node:assert/strict";
import fc from "fast-check";
import type { MaybePromise, Store } from "../store.js";
import { ALGORITHMS, scenarioOf, type Theme } from "./scenario.js";
import { Trace } from "./trace.js";
import type { VirtualClock } from "./virtualClock.js";

export interface ConformanceOptions {
  /** What the tests are listed under, such as "memoryStore". */
  readonly name: string;
  /** The test runner's own: of vitest, jest or node:test. */
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: (name: string, body: () => Promise<void>, timeoutMs?: number) => unknown;
  /** A fresh, empty store whose only clock is this one. */
  createStore(context: { readonly clock: () => number }): MaybePromise<Store>;
  /** Called after each test instead of `store.close()`, where more is to be cleaned up. */
  discard?(store: Store): MaybePromise<void>;
  /** How many random decisions to compare for each algorithm: 10,000 unless told. */
  readonly decisions?: number;
  /** Plays the random traces of a failed run again: the seed it printed. */
  readonly seed?: number;
}

const LONGEST_TRACE = 600;
const TIMEOUT_MS = 600_000;

export function conformance(options: ConformanceOptions): void {
  const { name, describe, it } = options;
  describe(`${name} conforms`, () => {
    describe("every decision on random traces equals the naive model's", () => {
      for (const theme of [...ALGORITHMS, "several rules"] as const) {
        it(theme, () => playTraces(options, theme), TIMEOUT_MS);
      }
    });
  });
}

async function playTraces(options: ConformanceOptions, theme: Theme): Promise<void> {
  const { decisions = 10_000, seed } = options;
  let compared = 0;
  const property = fc.asyncProperty(
    fc.nat(),
    fc.array(fc.nat(), { maxLength: LONGEST_TRACE, size: "max" }),
    async (scenario, codes) => {
      const clock: VirtualClock = { now: 0 };
      const store = await options.createStore({ clock: () => clock.now });
      const trace = new Trace(store, clock, scenarioOf(theme, scenario));
      await trace.play(codes);
      compared += trace.decisions;
      await (options.discard ? options.discard(store) : store.close());
    },
  );
  // Lengths are even from none to the longest, and four steps in five are decisions.
  const numRuns = Math.ceil((3 * decisions) / LONGEST_TRACE);
  await fc.assert(property, { numRuns, unbiased: true, ...(seed !== undefined && { seed }) });
  assert.ok(compared >= decisions, `only ${compared} decisions were compared`);
}
