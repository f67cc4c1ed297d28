import assert from "node:assert/strict";
import fc from "fast-check";
import { scenarioOf, type Theme } from "./scenario.js";
import { Trace } from "./trace.js";
import { inWorld, type WorldOptions } from "./world.js";

const LONGEST_TRACE = 600;
/** How long a failing trace is shrunk: on a remote store it would else take minutes. */
const SHRINKING_MS = 20_000;

/** Plays random traces until enough decisions were compared. One that fails is shrunk and printed with its seed. */
export async function playTraces(
  options: WorldOptions & { readonly seed?: number },
  theme: Theme,
  decisions: number,
): Promise<void> {
  const { seed } = options;
  let compared = 0;
  let shrinkUntil = Infinity;
  const property = fc.asyncProperty(
    fc.nat(),
    fc.array(fc.nat(), { maxLength: LONGEST_TRACE, size: "max" }),
    async (scenario, codes) => {
      if (performance.now() > shrinkUntil) return;
      await inWorld(options, async (world) => {
        const trace = new Trace(world, scenarioOf(theme, scenario));
        await trace.play(codes).catch((error) => {
          shrinkUntil = Math.min(shrinkUntil, performance.now() + SHRINKING_MS);
          throw error;
        });
        compared += trace.decisions;
      });
    },
  );
  // Unbiased lengths are even from none to the longest, and three steps in four are decisions.
  const numRuns = Math.ceil((3 * decisions) / LONGEST_TRACE) + 10;
  await fc.assert(property, { numRuns, unbiased: true, ...(seed !== undefined && { seed }) });
  assert.ok(compared >= decisions, `only ${compared} decisions were compared`);
}
