import { SluiceError } from "../errors.js";
import type { Rule, RuleInput } from "../rule.js";
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

/** An algorithm as rules of it are built: its arithmetic, and the options that only it has. */
export interface Kind {
  readonly arithmetic: Algorithm<unknown, unknown>;
  readonly options?: readonly string[];
  /** The rule with these options, their defaults filled in; refuses what is wrong with them. */
  finish?(rule: Rule, input: RuleInput): Rule;
}

/** The kinds that rules were built of here: each builder brings its own, so that a bundle has no others. */
const known = new Map<string, Kind>();

export function know(name: AlgorithmName | `leased ${AlgorithmName}`, kind: Kind): void {
  known.set(name, kind);
}

export function kindOf(name: string): Kind {
  const found = known.get(name);
  if (found !== undefined) return found;
  throw new SluiceError(
    "INVALID_RULE",
    `No ${name} was built in this process yet; pass rules that are plain data through \`rule(...)\` first.`,
  );
}

/** The arithmetic of a rule that was built here. */
export function algorithmOf({ algorithm, lease }: Rule): Algorithm<unknown, unknown> {
  return kindOf(lease ? `leased ${algorithm}` : algorithm).arithmetic;
}
