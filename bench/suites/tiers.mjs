// @ts-check
import { createLimiter, memoryStore, resilient, slidingLog, tiered } from "sluice";
import { redisStore } from "sluice/redis";
import { runProcesses } from "../../packages/sluice/test/tierProcesses.mjs";
import { race } from "../lib/race.mjs";
import { startRedis } from "../lib/redis-server.mjs";
import { ratio } from "../lib/stats.mjs";
import { keysOf } from "../lib/traffic.mjs";
import { byId } from "./memory.mjs";

/**
 * @typedef {import("sluice").Store} Store
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/race.mjs").Lap} Lap
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {import("../lib/report.mjs").Target} Target
 * @typedef {Awaited<ReturnType<typeof startRedis>>} Server
 */

const DEADLINE_MS = 50;

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
    const times = await hang(server, rounds);
    const open = await race(await breakerOpen(server), { rounds, roundMs });
    return {
      sections: [sharedSection([hot, over]), oneSection(one), hungSection(times), openSection(open)],
      targets: [
        ...sharedTargets(hot, 20),
        ...sharedTargets(over, 50),
        atLeast("tiers-one", "One process on hot keys: times the decisions/s of `redisStore` alone", 10, {
          value: ratio(byId(one, "alone").wallNs, byId(one, "tiered").wallNs).median,
          unit: "ratio",
        }),
        {
          id: "tiers-hung",
          claim: "Redis hung: the slowest of 100 decisions, deadline 50 ms",
          wanted: "at most",
          bound: DEADLINE_MS + 10,
          value: quantileOf(times, 0.99),
          unit: "ms",
        },
        atLeast("tiers-open", "Redis hung, breaker open: decisions/s beside `memoryStore`'s", 1, {
          value: ratio(byId(open, "memory").wallNs, byId(open, "closed").wallNs).median,
          unit: "ratio",
        }),
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
  return [calls("alone", "`redisStore` alone", alone), calls("tiered", "`tiered` with leases", leased)];
}

/** @param {Lap[]} laps @returns {Section} */
function oneSection(laps) {
  return speedSection(laps, "alone", {
    id: "tiers-one",
    title: "One process on hot keys",
    note: "16 keys, 256 calls under way, all admitted.",
  });
}

/**
 * Many decisions under way each time that Redis hangs: how long each took that was asked for from then on.
 * @param {Server} server
 * @param {number} rounds
 */
async function hang(server, rounds) {
  const store = resilient(redisStore(server.connect()), { onOutage: "closed", deadlineMs: DEADLINE_MS });
  const limiter = createLimiter({ store, rules: slidingLog({ limit: 1_000_000, window: "1m" }) });
  /** @type {number[]} */
  const times = [];
  for (let round = 0; round < rounds; round++) {
    while ((await limiter.tryAcquire("well")).degraded !== undefined) await sleep(10);
    server.signal("SIGSTOP");
    for (const end = performance.now() + 3 * DEADLINE_MS; performance.now() < end; await sleep(2)) {
      for (let n = 0; n < 10; n++) {
        const start = performance.now();
        void limiter.tryAcquire(`user:${n}`).then(() => times.push(performance.now() - start));
      }
    }
    await sleep(2 * DEADLINE_MS);
    server.signal("SIGCONT");
  }
  return times.sort((a, b) => a - b);
}

/** @param {readonly number[]} times @returns {Section} */
function hungSection(times) {
  return {
    id: "tiers-hung",
    title: "Redis hung",
    note:
      `\`resilient\` with a deadline of ${DEADLINE_MS} ms and 5,000 calls a second; Redis is stopped (SIGSTOP) again ` +
      "and again, for three deadlines each time. Every decision is counted from that moment, those before the breaker opens included.",
    columns: [
      { key: "decisions", title: "decisions", unit: "count" },
      { key: "p50", title: "p50", unit: "ms" },
      { key: "p99", title: "p99", unit: "ms" },
      { key: "most", title: "slowest", unit: "ms" },
    ],
    rows: [
      {
        id: "closed",
        label: 'onOutage: "closed"',
        cells: {
          decisions: times.length,
          p50: quantileOf(times, 0.5),
          p99: quantileOf(times, 0.99),
          most: quantileOf(times, 1),
        },
      },
    ],
  };
}

/** Redis hangs, and the breaker knows. @param {Server} server @returns {Promise<Contender[]>} */
async function breakerOpen(server) {
  const redis = redisStore(server.connect());
  const policies = /** @type {const} */ (["closed", "open", "local"]);
  const contenders = policies.map((onOutage) => {
    const store = resilient(redis, { onOutage, deadlineMs: DEADLINE_MS });
    return calls(onOutage, `\`resilient\`, onOutage: "${onOutage}"`, store);
  });
  server.signal("SIGSTOP");
  await contenders[0]?.run(1000);
  return [calls("memory", "`memoryStore`, nothing out", memoryStore()), ...contenders];
}

/** @param {Lap[]} laps @returns {Section} */
function openSection(laps) {
  return speedSection(laps, "memory", {
    id: "tiers-open",
    title: "Redis hung, breaker open",
    note: "Decisions that need no Redis: as above, beside the memory store in turns.",
  });
}

/**
 * @param {Lap[]} laps
 * @param {string} base
 * @param {Pick<Section, "id" | "title" | "note">} head
 * @returns {Section}
 */
function speedSection(laps, base, head) {
  return {
    ...head,
    columns: [
      { key: "perSecond", title: "decisions/s", unit: "perSecond" },
      { key: "times", title: "times the first", unit: "ratio" },
      { key: "busy", title: "CPU at work", unit: "share" },
    ],
    rows: laps.map((lap) => ({
      id: lap.id,
      label: lap.label,
      cells: {
        perSecond: lap.perSecond,
        times: ratio(byId(laps, base).wallNs, lap.wallNs),
        busy: ratio(lap.cpuNs, lap.wallNs),
      },
    })),
  };
}

/**
 * Decisions on 16 hot keys, 256 under way at a time.
 * @param {string} id
 * @param {string} label
 * @param {Store} store
 * @returns {Contender}
 */
function calls(id, label, store) {
  const limiter = createLimiter({
    name: id,
    store,
    rules: slidingLog({ limit: 1_000_000_000, window: "1m" }),
  });
  const keys = keysOf(16);
  return {
    id,
    label,
    async run(decisions) {
      let allowed = 0;
      let left = decisions;
      const worker = async (/** @type {number} */ from) => {
        for (let n = from; left > 0; n++) {
          left--;
          if ((await limiter.tryAcquire(String(keys[n % keys.length]))).allowed) allowed++;
          // Answers that come at once never let timers or sockets have their turn.
          if (left % 4096 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await Promise.all(Array.from({ length: 256 }, (_, n) => worker(n)));
      return allowed;
    },
  };
}

/** @param {number} ms */
function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @param {readonly number[]} sorted @param {number} q */
function quantileOf(sorted, q) {
  return Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]);
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
