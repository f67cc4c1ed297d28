// @ts-check
import { slidingLog } from "sluice";
import {
  expressRateLimit,
  fastifyRateLimit,
  floor,
  nestThrottler,
  rateLimiterFlexible,
  sluiceSync,
} from "../contenders/memory.mjs";
import { race } from "../lib/race.mjs";
import { spread } from "../lib/stats.mjs";
import { keysOf, releaseClocks, virtualizeClocks } from "../lib/traffic.mjs";

/**
 * @typedef {import("../contenders/memory.mjs").Setting} Setting
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {import("../lib/report.mjs").Target} Target
 * @typedef {{ label: string, make: (setting: Setting) => Contender, most?: number }} Line
 */

const DAY_MS = 86_400_000;
const POWERS = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

export const title = "What grows with what";
export const about =
  "CPU per decision while one quantity grows and the rest stays. Each key stands at its limit and the window " +
  "slides, so that requests enter and leave all the time, unless noted.";

const sluice = { label: "Sluice slidingLog", make: sluiceSync };
const flexible = { label: "rate-limiter-flexible (fixed window)", make: rateLimiterFlexible };

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds: most, roundMs, scale, onProgress }) {
  const rounds = Math.min(9, most); // many contenders, and differences that are large or nothing
  virtualizeClocks();
  let part = 0;
  /** @type {(lines: Line[], values: number[], setting: (value: number) => Setting, warmUp: (setting: Setting) => number) => Promise<import("../lib/report.mjs").Row[]>} */
  const grow = async (lines, values, setting, warmUp) => {
    const contenders = lines.flatMap(({ make, most = Infinity }, line) =>
      values
        .filter((value) => value <= most)
        .map((value) => {
          const its = setting(value);
          return { ...make(its), id: `${line}:${value}`, warmUp: warmUp(its) };
        }),
    );
    const laps = await race(contenders, {
      rounds,
      roundMs,
      onProgress: (done, total) => onProgress((part + done / total) / 5),
    });
    part++;
    return lines.map(({ label }, line) => ({
      id: label,
      label,
      cells: Object.fromEntries(
        values.map((value) => {
          const lap = laps.find(({ id }) => id === `${line}:${value}`);
          return [String(value), lap ? spread(lap.cpuNs) : null];
        }),
      ),
    }));
  };
  const untilFull = (/** @type {Setting} */ { keys, limit }) => keys.length * limit * 1.5;
  const quick = (/** @type {number[]} */ values) => values.filter((value) => value <= 1_000_000 * scale);

  const limits = quick(POWERS);
  const byLimit = await grow(
    [
      sluice,
      { ...flexible, most: 10_000 },
      { label: "@nestjs/throttler (array of hits)", make: nestThrottler, most: 10_000 },
    ],
    limits,
    (limit) => ({ keys: keysOf(1), limit, windowMs: DAY_MS, demand: 1 }),
    untilFull,
  );
  const costs = quick([1, ...POWERS]);
  const byCost = await grow(
    [sluice, flexible],
    costs,
    (cost) => ({ keys: keysOf(1), limit: 100, cost, windowMs: DAY_MS, demand: 1 }),
    untilFull,
  );
  const counts = quick([1, ...POWERS]);
  const byKeys = await grow(
    [
      { label: "floor: Map lookup and clock read", make: floor },
      sluice,
      { label: "express-rate-limit (fixed window)", make: expressRateLimit },
      { ...flexible, most: 10_000 },
    ],
    counts,
    (keys) => ({ keys: keysOf(keys), limit: 10, windowMs: DAY_MS, demand: 0.5 }),
    ({ keys }) => keys.length * 5,
  );
  const byRules = await grow(
    [{ label: "Sluice, exact windows of one key", make: sluiceSync }],
    [1, 2, 3, 5, 8],
    (rules) => ({ keys: keysOf(1_000), limit: 100, windowMs: 60_000, demand: 2, rules: windows(rules) }),
    untilFull,
  );
  const byCap = await grow(
    [
      { label: "Sluice slidingLog, maxKeys as given", make: (s) => sluiceSync({ ...s, maxKeys: s.limit }) },
      { label: "@fastify/rate-limit, its cache of 5,000", make: fastifyRateLimit, most: 5_000 },
    ],
    quick([1_000, 5_000, 10_000, 100_000]),
    (cap) => ({ keys: keysOf(Math.max(20_000, cap * 4)), limit: cap, windowMs: DAY_MS, demand: 0.001 }),
    ({ limit }) => limit * 2,
  );
  releaseClocks();

  const note =
    "One key, as many requests as its limit allows, a window of one day: the log is full, and each request enters as another leaves.";
  return {
    sections: [
      section("limit", "Limit", note, limits, byLimit),
      section(
        "cost",
        "Cost of one request",
        "One key, a limit of 100 times the cost, as many requests as it allows.",
        costs,
        byCost,
      ),
      section(
        "keys",
        "Number of keys",
        "Half the demand a limit of 10 per day allows, keys in random order.",
        counts,
        byKeys,
      ),
      section(
        "rules",
        "Number of rules",
        "Exact windows over one string key, decided together; 1,000 keys.",
        [1, 2, 3, 5, 8],
        byRules,
      ),
      section(
        "cap",
        "Cap on keys, all of it one-hit keys",
        "Nearly every decision is a new key's, for which an old one has to go.",
        quick([1_000, 5_000, 10_000, 100_000]),
        byCap,
      ),
    ],
    targets: [
      flat(
        "limit",
        `Exact log, CPU per decision from limit 10 to ${limits.at(-1)?.toLocaleString("en-US")}: most over least`,
        byLimit[0],
      ),
      flat(
        "cost",
        `Exact log, CPU per decision from cost 1 to ${costs.at(-1)?.toLocaleString("en-US")}: most over least`,
        byCost[0],
      ),
    ],
  };
}

/** @param {number} count exact windows that differ in length, each with a limit that binds */
function windows(count) {
  return Array.from({ length: count }, (_, n) =>
    slidingLog({ name: `w${n}`, limit: 100 * (n + 1), window: 60_000 * (n + 1) }),
  );
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} note
 * @param {number[]} values
 * @param {import("../lib/report.mjs").Row[]} rows
 * @returns {Section}
 */
function section(id, title, note, values, rows) {
  return {
    id: `growth-${id}`,
    title,
    note,
    columns: values.map((value) => ({
      key: String(value),
      title: value.toLocaleString("en-US"),
      unit: "ns",
    })),
    rows,
    plot: { kind: "lines", caption: `CPU per decision by ${title.toLowerCase()}` },
  };
}

/**
 * @param {string} id
 * @param {string} claim
 * @param {import("../lib/report.mjs").Row | undefined} row
 * @returns {Target}
 */
function flat(id, claim, row) {
  const medians = Object.values(row?.cells ?? {}).map(
    (cell) => /** @type {import("../lib/stats.mjs").Spread} */ (cell).median,
  );
  const value = Math.max(...medians) / Math.min(...medians);
  return { id: `growth-${id}-flat`, claim, wanted: "at most", bound: 1.25, value, unit: "ratio" };
}
