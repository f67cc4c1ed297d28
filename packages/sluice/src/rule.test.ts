import { describe, expect, it } from "vitest";
import {
  capacity,
  checkRule,
  fixedWindow,
  leakyBucket,
  type Rule,
  type RuleInput,
  rule as ruleOf,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "./rule.js";

const common = { limit: 10, window: 1000 };

describe("a rule", () => {
  it("is plain data with its defaults filled in", () => {
    expect([
      slidingLog({ limit: 10, window: "1m" }),
      slidingCells(common),
      slidingCounter(common),
      fixedWindow(common),
      tokenBucket(common),
      leakyBucket(common),
    ]).toEqual([
      { algorithm: "slidingLog", name: "1m", limit: 10, window: 60_000, layout: "compact" },
      { algorithm: "slidingCells", name: "1s", ...common, cells: 60, mode: "strict" },
      { algorithm: "slidingCounter", name: "1s", ...common },
      { algorithm: "fixedWindow", name: "1s", ...common },
      { algorithm: "tokenBucket", name: "1s", ...common, burst: 10 },
      { algorithm: "leakyBucket", name: "1s", ...common, burst: 1 },
    ]);
  });

  it("stays the same when checked again, and when it went through JSON", () => {
    const rules = [slidingLog({ ...common, by: ["user", "ip"] }), slidingCells(common), tokenBucket(common)];
    for (const rule of rules) {
      expect(checkRule(rule)).toEqual(rule);
      expect(checkRule(JSON.parse(JSON.stringify(rule)))).toEqual(rule);
    }
  });

  it("is named by its window and by what it counts by", () => {
    expect(slidingLog({ ...common, by: ["user", "ip"] }).name).toBe("1s user ip");
  });

  it("has no more cells than milliseconds", () => {
    expect(slidingCells({ limit: 1, window: 7, cells: 60 }).cells).toBe(7);
  });

  it.each<[Rule, number]>([
    [slidingLog(common), 10],
    [slidingCells(common), 10],
    [tokenBucket({ ...common, burst: 50 }), 50],
    [leakyBucket(common), 1],
  ])("%o admits %d at once", (rule, most) => {
    expect(capacity(rule)).toBe(most);
  });
});

describe("a bad rule is refused, with what was given and what is allowed", () => {
  const bad = (changes: Record<string, unknown>) => ({ algorithm: "slidingLog", ...common, ...changes });

  it.each<readonly unknown[]>([
    ...[0, -1, 1.5, Number.NaN, Infinity, 2 ** 53, "10", undefined, null].map((limit) => [
      bad({ limit }),
      "slidingLog's limit must be a whole number of at least 1 (up to 2^53 - 1); got",
    ]),
    ...[0, -1, 0.5, Number.NaN, Infinity, "", "1y", undefined].map((window) => [
      bad({ window }),
      "slidingLog's window must be",
    ]),
    ...["", "a/b", "a\n", "x".repeat(65), 7, {}].map((name) => [
      bad({ name }),
      "A rule's name must be 1 to 64",
    ]),
    ...[[], ["a", "a"], [""], "user", [7], ["a/b"]].map((by) => [
      bad({ by }),
      "A rule's by must list the names",
    ]),
    [bad({ layout: "list" }), 'A rule\'s layout must be "compact" or "zset"; got "list".'],
    [
      bad({ burst: 3 }),
      'slidingLog has no option "burst"; it has limit, window, lease, name, by, algorithm, layout.',
    ],
    [bad({ algorithm: "slidingCells", mode: "loose" }), 'mode must be "strict" or "weighted"; got "loose".'],
    [
      bad({ algorithm: "slidingCells", cells: 0 }),
      "slidingCells' cells must be a whole number from 1 to 1000",
    ],
    [bad({ algorithm: "slidingCells", cells: 1001 }), "got 1001"],
    [bad({ algorithm: "tokenBucket", burst: 0 }), "tokenBucket's burst must be a whole number of at least 1"],
    [bad({ algorithm: "leakyBucket", burst: Number.NaN }), "leakyBucket's burst"],
    [
      bad({ algorithm: "tokenBucket", burst: 2 ** 50, window: "1d" }),
      "tokenBucket of burst 1125899906842624 over 1d is too large to count exactly; use slidingCells.",
    ],
    [bad({ algorithm: "toString" }), "A rule's algorithm must be one of slidingLog, slidingCells"],
    [bad({ algorithm: undefined }), "got undefined"],
    [null, "A rule must be an object; got null."],
    ["slidingLog", 'A rule must be an object; got "slidingLog".'],
  ])("%j", (rule, message) => {
    const checking = () => ruleOf(rule as RuleInput);
    expect(checking).toThrow(expect.objectContaining({ name: "SluiceError", code: "INVALID_RULE" }));
    expect(checking).toThrow(message as string);
  });
});
