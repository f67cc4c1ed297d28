import { SluiceError } from "../errors.js";
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

/** What a rule's `algorithm` may be; each has a page in docs/algorithms. */
export type AlgorithmName =
  | "slidingLog"
  | "slidingCells"
  | "slidingCounter"
  | "fixedWindow"
  | "tokenBucket"
  | "leakyBucket"
  | "concurrent";

/** The algorithms that rules were built of here: each builder brings its own, so that a bundle has no others. */
const known = new Map<AlgorithmName, Algorithm<unknown, unknown>>();

export function know(name: AlgorithmName, algorithm: Algorithm<unknown, unknown>): void {
  known.set(name, algorithm);
}

/** The arithmetic of a rule that was built here. */
export function algorithmOf({ algorithm }: Rule): Algorithm<unknown, unknown> {
  const found = known.get(algorithm);
  if (found !== undefined) return found;
  throw new SluiceError(
    "INVALID_RULE",
    `No ${algorithm} was built in this process yet; pass rules that are plain data through \`rule(...)\` first.`,
  );
}
