// @ts-check
import * as contenders from "../contenders/memory.mjs";
import { race } from "../lib/race.mjs";
import { ratio, spread } from "../lib/stats.mjs";
import { keysOf, releaseClocks, virtualizeClocks } from "../lib/traffic.mjs";
import { measureHeap } from "./heap.mjs";

/**
 * @typedef {import("../lib/race.mjs").Lap} Lap
 * @typedef {import("./index.mjs").Effort} Effort
 */

const KEYS = 1_000;
const LIMIT = 100;
const WINDOW_MS = 60_000;

export const title = "In one process";
export const about =
  "Limiters that keep their counts in memory, in one process, in turns. Time is virtual but each clock reading " +
  "is paid for; ns is wall time and CPU is that of all threads of the process, both per decision.";

const demands = [
  { id: "admitted", demand: 0.5, text: "half of what the limit allows: all are admitted" },
  { id: "mix", demand: 2, text: "twice what the limit allows: about half are admitted" },
  { id: "refused", demand: 1_000, text: "a thousand times what the limit allows: nearly all are refused" },
];

/**
 * @param {Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, scale, onProgress }) {
  virtualizeClocks();
  /** @type {import("../lib/report.mjs").Section[]} */
  const sections = [];
  /** @type {import("../lib/report.mjs").Target[]} */
  const targets = [];
  for (const [part, { id, demand, text }] of demands.entries()) {
    const keys = keysOf(Math.max(10, KEYS * scale));
    const laps = await race(
      field({ keys, limit: LIMIT, windowMs: WINDOW_MS, demand, staggered: demand === 2 }),
      {
        rounds,
        roundMs,
        onProgress: (done, total) => onProgress((part + done / total) / 4),
      },
    );
    sections.push(section(id, text, laps));
    targets.push(...speedTargets(id, laps));
  }
  releaseClocks();
  const heap = await measureHeap(scale, (share) => onProgress((3 + share) / 4));
  return { sections: [...sections, ...heap.sections], targets: [...targets, ...heap.targets] };
}

/**
 * Those that refuse at once take part in everything; queues, which delay instead, where all is admitted.
 * @param {contenders.Setting} setting
 */
export function field(setting) {
  const { floor, sluiceSync, sluiceAsync, ...peers } = contenders;
  const { pThrottlePackage, bottleneck, ...refusing } = peers;
  const all = [floor, sluiceSync, sluiceAsync, ...Object.values(setting.demand < 1 ? peers : refusing)];
  // Staggered: two windows, the keys beginning in the first. Otherwise until every key is full, were it refused.
  const { keys, limit, demand, staggered } = setting;
  const warmUp = keys.length * limit * (staggered ? 2.2 * demand : 1.5);
  return all.map((contender) => {
    const queue = contender === bottleneck;
    return { ...contender(setting), warmUp: queue ? 1 : warmUp };
  });
}

/**
 * @param {string} id
 * @param {string} text
 * @param {Lap[]} laps
 * @returns {import("../lib/report.mjs").Section}
 */
function section(id, text, laps) {
  const sluice = byId(laps, "sluice-sync");
  return {
    id: `memory-${id}`,
    title: `${KEYS.toLocaleString("en-US")} keys, demand ${text}`,
    note: `Limit ${LIMIT} per minute and key. The ratio is to the CPU of \`tryAcquireSync\`: above 1x, Sluice needs less.`,
    columns: [
      { key: "perSecond", title: "decisions/s", unit: "perSecond" },
      { key: "wall", title: "wall", unit: "ns" },
      { key: "cpu", title: "CPU", unit: "ns" },
      { key: "faster", title: "of Sluice's CPU", unit: "ratio" },
      { key: "allowed", title: "admitted", unit: "share" },
    ],
    rows: laps.map((lap) => ({
      id: lap.id,
      label: lap.label,
      cells: {
        perSecond: lap.perSecond,
        wall: spread(lap.wallNs),
        cpu: spread(lap.cpuNs),
        faster: ratio(lap.cpuNs, sluice.cpuNs),
        allowed: lap.allowed,
      },
    })),
    plot: { kind: "bars", column: "cpu", caption: "CPU per decision (shorter is better)", scale: "log" },
  };
}

/**
 * @param {string} traffic
 * @param {Lap[]} laps
 * @returns {import("../lib/report.mjs").Target[]}
 */
function speedTargets(traffic, laps) {
  const sluice = byId(laps, "sluice-sync");
  const against = (/** @type {string} */ id) => ratio(byId(laps, id).cpuNs, sluice.cpuNs).median;
  const words = traffic === "mix" ? "at the limit" : `${traffic} traffic`;
  return [
    {
      id: `memory-${traffic}-flexible`,
      claim: `Exact log, ${words}: speed, times rate-limiter-flexible's memory limiter`,
      wanted: "at least",
      bound: 8,
      value: against("rate-limiter-flexible"),
      unit: "ratio",
    },
    {
      id: `memory-${traffic}-express`,
      claim: `Exact log, ${words}: speed, times express-rate-limit's MemoryStore.increment`,
      wanted: "at least",
      bound: 1,
      value: against("express-rate-limit"),
      unit: "ratio",
    },
  ];
}

/**
 * @param {Lap[]} laps
 * @param {string} id
 */
export function byId(laps, id) {
  const lap = laps.find((lap) => lap.id === id);
  if (lap === undefined) throw new Error(`no contender ${id}`);
  return lap;
}
