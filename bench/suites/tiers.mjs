// @ts-check
import { tiered } from "sluice";
import { redisStore } from "sluice/redis";
import { runProcesses } from "../../packages/sluice/test/tierProcesses.mjs";
import { hotKeys } from "../contenders/hot-keys.mjs";
import { race } from "../lib/race.mjs";
import { startRedis } from "../lib/redis-server.mjs";
import { speedSection } from "../lib/speed.mjs";
import { ratio } from "../lib/stats.mjs";
import { measureHung } from "./hung.mjs";
import { byId } from "./memory.mjs";

/**
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/race.mjs").Lap} Lap
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {import("../lib/report.mjs").Target} Target
 * @typedef {Awaited<ReturnType<typeof startRedis>>} Server
 */

export const title = "Tiers and outages";
export const about =
  "`tiered` with leases, and `resilient`, on one Redis. A round trip is a script that Redis was sent, by its own " +
  "INFO commandstats, whether it decided one call or many.";

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, scale, onProgress }) {
  const server = await startRedis();
  try {
    const hot = await shared(server, 1.5, scale);
    onProgress(0.45);
    const over = await shared(server, 5, scale);
    onProgress(0.9);
    // Turns in which leases come and go as they do in a process that goes on.
    const one = await race(oneProcess(server), { rounds: Math.min(rounds, 5), roundMs: 10 * roundMs });
    onProgress(0.93);
    const hung = await measureHung(server, { rounds, roundMs });
    return {
      sections: [sharedSection([hot, over]), oneSection(one), ...hung.sections],
      targets: [
        ...sharedTargets(hot, 20),
        ...sharedTargets(over, 50),
        atLeast("tiers-one", "One process on hot keys: times the decisions/s of `redisStore` alone", 10, {
          value: ratio(byId(one, "alone").wallNs, byId(one, "tiered").wallNs).median,
          unit: "ratio",
        }),
        ...hung.targets,
      ],
    };
  } finally {
    await server.stop();
  }
}

/**
 * @typedef {object} Shared
 * @property {number} load
 * @property {number} limit
 * @property {number} processes
 * @property {import("../../packages/sluice/test/tierProcesses.mjs").SharedOutcome} alone
 * @property {import("../../packages/sluice/test/tierProcesses.mjs").SharedOutcome} leased
 */

/**
 * The same traffic on one key from many processes, with leases and without. It is full to begin with, and so all
 * the time: every permit that is free again is wanted. With leases for a whole window, in which each permit is free once.
 * @param {Server} server
 * @param {number} load
 * @param {number} scale
 * @returns {Promise<Shared>}
 */
async function shared(server, load, scale) {
  const window = Math.max(1000, 30_000 * scale);
  const limit = 2 * window;
  const processes = Math.max(2, Math.round(8 * scale));
  const common = { redis: { path: server.path }, limit, window, processes, load, isFull: true };
  const alone = await runProcesses({ ...common, leases: false, durationMs: window / 5 });
  const leased = await runProcesses({ ...common, leases: true, durationMs: window });
  return { load, limit, processes, alone, leased };
}

/** @param {Shared} shared */
function timesFewer({ alone, leased }) {
  return alone.roundTrips / alone.calls / (leased.roundTrips / leased.calls);
}

/** @param {readonly Shared[]} all @returns {Section} */
function sharedSection(all) {
  const { limit, processes } = /** @type {Shared} */ (all[0]);
  const window = Math.round(limit / 2000);
  return {
    id: "tiers-shared",
    title: `${processes} processes on one key that is full`,
    note:
      `Limit ${limit.toLocaleString("en-US")} per ${window} s, taken evenly in the window before. Each process calls at random ` +
      "times of its own, whatever the answers are; all together as many times the limit as the row says. The ideal is what " +
      "an exact log would have admitted of the same calls, had it heard of each at once; the fullest window counts all " +
      "processes' admissions, and those before.",
    columns: [
      { key: "calls", title: "calls", unit: "count" },
      { key: "perCall", title: "round trips per call", unit: "count" },
      { key: "fewer", title: "times fewer", unit: "ratio" },
      { key: "ideal", title: "admitted, of the ideal", unit: "share" },
      { key: "fullest", title: "fullest window, of the limit", unit: "share" },
    ],
    rows: all.flatMap((each) => {
      const row = (/** @type {Shared["alone"]} */ outcome, /** @type {string} */ name) => ({
        id: `${name}-${each.load}`,
        label: `${each.load} times the limit, ${outcome === each.leased ? "`tiered` with leases" : "`redisStore` alone"}`,
        cells: {
          calls: outcome.calls,
          perCall: outcome.roundTrips / outcome.calls,
          fewer: outcome === each.leased ? timesFewer(each) : 1,
          ideal: outcome.admitted / outcome.ideal,
          fullest: outcome.most / limit,
        },
      });
      return [row(each.alone, "alone"), row(each.leased, "leased")];
    }),
  };
}

/** @param {Shared} shared @param {number} fewer @returns {Target[]} */
function sharedTargets(shared, fewer) {
  const { load, limit, leased, processes } = shared;
  const where = `A key at ${load} times its limit, ${processes} processes`;
  return [
    atLeast(`tiers-fewer-${load}`, `${where}: times fewer round trips than \`redisStore\` alone`, fewer, {
      value: timesFewer(shared),
      unit: "ratio",
    }),
    atLeast(`tiers-ideal-${load}`, `${where}: admitted, of the ideal`, 0.99, {
      value: leased.admitted / leased.ideal,
      unit: "share",
    }),
    {
      id: `tiers-over-${load}`,
      claim: `${where}: the fullest window, of the limit`,
      wanted: "at most",
      bound: 1,
      value: leased.most / limit,
      unit: "share",
    },
  ];
}

/** @param {Server} server @returns {Contender[]} */
function oneProcess(server) {
  const alone = redisStore(server.connect(), { prefix: "alone:" });
  const leased = tiered(redisStore(server.connect()), { leases: true });
  return [hotKeys("alone", "`redisStore` alone", alone), hotKeys("tiered", "`tiered` with leases", leased)];
}

/** @param {Lap[]} laps @returns {Section} */
function oneSection(laps) {
  return speedSection(laps, {
    id: "tiers-one",
    title: "One process on hot keys",
    note: "16 keys, 256 calls under way, all admitted.",
  });
}

/**
 * @param {string} id
 * @param {string} claim
 * @param {number} bound
 * @param {Pick<Target, "value" | "unit">} measured
 * @returns {Target}
 */
function atLeast(id, claim, bound, measured) {
  return { id, claim, wanted: "at least", bound, ...measured };
}
