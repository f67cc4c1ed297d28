import type { AlgorithmName } from "../algorithms/index.js";
import type { Key } from "../key.js";
import {
  concurrent,
  fixedWindow,
  leakyBucket,
  type Rule,
  type RuleOptions,
  rule,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "../rule.js";

/** The numbers that one random integer stands for; a smaller integer stands for simpler ones. */
export class Digits {
  #rest: number;

  constructor(code: number) {
    this.#rest = code;
  }

  /** A number from 0 to `n - 1`. */
  below(n: number): number {
    const digit = this.#rest % n;
    this.#rest = Math.floor(this.#rest / n);
    return digit;
  }

  of<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)];
  }
}

/** What a random trace plays on. */
export interface Scenario {
  readonly rules: readonly Rule[];
  readonly keys: readonly Key[];
  /** The time at which it begins. */
  readonly startAt: number;
}

/** Scenarios of one algorithm, of windows with a lease, or of several rules at once. */
export type Theme = AlgorithmName | "leases" | "several rules";

export const ALGORITHMS: readonly AlgorithmName[] = [
  "slidingLog",
  "slidingCells",
  "slidingCounter",
  "fixedWindow",
  "tokenBucket",
  "leakyBucket",
  "concurrent",
];

const LIMITS = [5, 1, 2, 3, 8, 20, 1_000_000_007];
const WINDOWS = [1000, 1, 2, 7, 10, 100, 60_000];
/** Where times no longer fit 31 bits. */
const WIDE_WINDOW = 2 ** 31 + 12_345;
const CELLS = [10, 1, 2, 3, 7, 60];
/** Today, the beginning, and where the low 32 bits of a time wrap around. */
const STARTS = [1_700_000_000_000, 0, 2 ** 32 - 500, 3 * 2 ** 32 - 70_000];

const KEYS: readonly Key[] = ["a", "b", "c"];
const RECORDS: readonly Key[] = [
  { user: "1", ip: "x" },
  { user: "1", ip: "y" },
  { user: 2, ip: "x" },
];
/** Keys of which one has no part but the one that rules count by. */
const PARTIAL_RECORDS: readonly Key[] = [{ user: "1" }, { user: "1", ip: "x" }, { user: 2 }];

export function scenarioOf(theme: Theme, code: number): Scenario {
  const digits = new Digits(code);
  const startAt = digits.of(STARTS);
  if (theme === "leases") {
    const algorithm = digits.of(ALGORITHMS.filter((name) => name !== "concurrent"));
    return { rules: [withLease(randomRule(algorithm, digits, {}), digits)], keys: KEYS, startAt };
  }
  if (theme !== "several rules") return { rules: [randomRule(theme, digits, {})], keys: KEYS, startAt };
  const keys = digits.of([KEYS, RECORDS, PARTIAL_RECORDS]);
  const rules = ["first", "second", "third"].slice(0, 2 + digits.below(2)).map((name) => {
    const by = digits.of(waysToCount(keys));
    const one = randomRule(digits.of(ALGORITHMS), digits, { name, ...(by && { by }) });
    return digits.below(3) === 2 ? withLease(one, digits) : one;
  });
  return { rules, keys, startAt };
}

/** The parts that all the keys have, in every choice and order. */
function waysToCount(keys: readonly Key[]): readonly (readonly string[] | undefined)[] {
  if (keys === KEYS) return [undefined];
  return keys === RECORDS ? [undefined, ["user"], ["ip"], ["ip", "user"]] : [undefined, ["user"]];
}

/** The rule with a lease that is shorter than its window, where that can be. */
function withLease({ layout, ...base }: Rule, digits: Digits): Rule {
  if (base.algorithm === "concurrent" || base.window === 1) return { ...base, ...(layout && { layout }) };
  return rule({ ...base, lease: 1 + digits.below(base.window - 1) });
}

function randomRule(algorithm: AlgorithmName, digits: Digits, base: Partial<RuleOptions>): Rule {
  const limit = digits.of(LIMITS);
  const isWide = limit < 100 && digits.below(16) === 15;
  const window = isWide ? WIDE_WINDOW : digits.of(WINDOWS);
  const common = { ...base, limit, window };
  switch (algorithm) {
    case "slidingLog":
      return slidingLog({ ...common, layout: digits.of(["compact", "zset"]) });
    case "slidingCells":
      return slidingCells({ ...common, cells: digits.of(CELLS), mode: digits.of(["strict", "weighted"]) });
    case "slidingCounter":
      return slidingCounter(common);
    case "fixedWindow":
      return fixedWindow(common);
    case "tokenBucket":
      return tokenBucket({ ...common, ...digits.of([{}, { burst: 1 }, { burst: 7 }, { burst: limit + 3 }]) });
    case "leakyBucket":
      return leakyBucket({ ...common, ...digits.of([{}, { burst: 2 }, { burst: limit }]) });
    case "concurrent":
      return concurrent({ ...base, limit, lease: window });
  }
}
