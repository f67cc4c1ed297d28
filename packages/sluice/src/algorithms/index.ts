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
const known = new Map<string, Algorithm<unknown, unknown>>();

export function know(
  name: AlgorithmName | `leased ${AlgorithmName}`,
  algorithm: Algorithm<unknown, unknown>,
): void {
  known.set(name, algorithm);
}

/** The arithmetic of a rule that was built here. */
export function algorithmOf({
  algorithm,
  lease,
}: Pick<Rule, "algorithm" | "lease">): Algorithm<unknown, unknown> {
  const name = lease ? `leased ${algorithm}` : algorithm;
  return known.get(name) ?? unbuilt(name);
}

export function unbuilt(name: string): never {
  throw new SluiceError(
    "INVALID_RULE",
    `No ${name} was built here; pass rules that are plain data through rule(...) first.`,
  );
}
