// @ts-check
import { fixedWindow, leakyBucket, slidingCells, slidingCounter, slidingLog, tokenBucket } from "sluice";
import { floor, sluiceSync } from "../contenders/memory.mjs";
import { race } from "../lib/race.mjs";
import { ratio, spread } from "../lib/stats.mjs";
import { keysOf, releaseClocks, virtualizeClocks } from "../lib/traffic.mjs";
import { byId } from "./memory.mjs";

export const title = "Sluice's algorithms beside each other";
export const about =
  "All in one process, as in an application that uses several: the engine cannot specialise for one of them, " +
  "so the exact log is a little slower here than alone.";

const rule = { limit: 100, window: 60_000 };
const algorithms = {
  slidingLog: slidingLog(rule),
  "slidingCells, strict, 60 cells": slidingCells(rule),
  "slidingCells, weighted, 60 cells": slidingCells({ ...rule, mode: "weighted" }),
  slidingCounter: slidingCounter(rule),
  fixedWindow: fixedWindow(rule),
  tokenBucket: tokenBucket(rule),
  "leakyBucket, burst 10": leakyBucket({ ...rule, burst: 10 }),
};

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, onProgress }) {
  virtualizeClocks();
  const setting = {
    keys: keysOf(1_000),
    limit: rule.limit,
    windowMs: rule.window,
    demand: 2,
    staggered: true,
  };
  const contenders = Object.entries(algorithms).map(([label, input]) => ({
    ...sluiceSync({ ...setting, rules: [input] }),
    id: label,
    label,
    warmUp: setting.keys.length * setting.limit * 4.4,
  }));
  const laps = await race([floor(setting), ...contenders], {
    rounds,
    roundMs,
    onProgress: (done, total) => onProgress(done / total),
  });
  releaseClocks();
  const base = byId(laps, "floor");
  return {
    sections: [
      {
        id: "algorithms",
        title: "tryAcquireSync, 1,000 keys, twice the demand that the limit allows",
        note: "Limit 100 per minute and key.",
        columns: [
          { key: "perSecond", title: "decisions/s", unit: "perSecond" },
          { key: "cpu", title: "CPU", unit: "ns" },
          { key: "floor", title: "times the floor", unit: "ratio" },
          { key: "allowed", title: "admitted", unit: "share" },
        ],
        rows: laps.map((lap) => ({
          id: lap.id,
          label: lap.label,
          cells: {
            perSecond: lap.perSecond,
            cpu: spread(lap.cpuNs),
            floor: ratio(lap.cpuNs, base.cpuNs),
            allowed: lap.allowed,
          },
        })),
      },
    ],
    targets: [],
  };
}
