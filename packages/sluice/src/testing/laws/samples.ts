import {
  concurrent,
  fixedWindow,
  leakyBucket,
  type Rule,
  rule,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "../../rule.js";

/** Every algorithm and mode, by what a test of it is named. */
export function sampleRules(limit: number, window: number): readonly (readonly [string, Rule])[] {
  const common = { limit, window };
  return [
    ["slidingLog", slidingLog(common)],
    ["slidingLog as a sorted set", slidingLog({ ...common, layout: "zset" })],
    ["strict slidingCells", slidingCells({ ...common, cells: 7 })],
    ["weighted slidingCells", slidingCells({ ...common, cells: 7, mode: "weighted" })],
    ["slidingCounter", slidingCounter(common)],
    ["fixedWindow", fixedWindow(common)],
    ["tokenBucket", tokenBucket(common)],
    ["leakyBucket", leakyBucket({ ...common, burst: Math.ceil(limit / 3) })],
    ["concurrent", concurrent({ limit, lease: window })],
    ["slidingLog with a lease", rule({ algorithm: "slidingLog", ...common, lease: Math.ceil(window / 3) })],
    [
      "slidingCells with a lease",
      rule({ algorithm: "slidingCells", ...common, cells: 7, lease: Math.ceil(window / 3) }),
    ],
  ];
}
