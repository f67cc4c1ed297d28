// @ts-check
// A part of the suite on tiers: decisions while Redis hangs.
import { createLimiter, memoryStore, resilient, slidingLog } from "sluice";
import { redisStore } from "sluice/redis";
import { hotKeys } from "../contenders/hot-keys.mjs";
import { race } from "../lib/race.mjs";
import { busyOf, speedSection } from "../lib/speed.mjs";
import { byId } from "./memory.mjs";

/**
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/race.mjs").Lap} Lap
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {Awaited<ReturnType<typeof import("../lib/redis-server.mjs").startRedis>>} Server
 */

const DEADLINE_MS = 50;

/**
 * @param {Server} server which hangs from then on
 * @param {{ rounds: number, roundMs: number }} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function measureHung(server, { rounds, roundMs }) {
  const times = await hang(server, rounds);
  // The last of a turn may be the probe, which waits for its deadline: turns are long beside that.
  const open = await race(await breakerOpen(server), { rounds: Math.min(rounds, 5), roundMs: 10 * roundMs });
  return {
    sections: [hungSection(times), openSection(open)],
    targets: [
      {
        id: "tiers-hung",
        claim: `Redis hung: p99 of decisions, deadline ${DEADLINE_MS} ms`,
        wanted: "at most",
        bound: DEADLINE_MS + 10,
        value: quantileOf(times, 0.99),
        unit: "ms",
      },
      {
        id: "tiers-open",
        claim: "Redis hung, breaker open: CPU at work, so nothing is waited for",
        wanted: "at least",
        bound: 0.95,
        value: busyOf(byId(open, "closed")).median,
        unit: "share",
      },
    ],
  };
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
      `\`resilient\` with a deadline of ${DEADLINE_MS} ms, ten calls every two milliseconds; Redis is stopped (SIGSTOP) again ` +
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
    return hotKeys(onOutage, `\`resilient\`, onOutage: "${onOutage}"`, store);
  });
  server.signal("SIGSTOP");
  await contenders[0]?.run(1000);
  return [hotKeys("memory", "`memoryStore`, nothing out", memoryStore()), ...contenders];
}

/** @param {Lap[]} laps @returns {Section} */
function openSection(laps) {
  return speedSection(laps, {
    id: "tiers-open",
    title: "Redis hung, breaker open",
    note: "Decisions that need no Redis: as above, beside the memory store in turns.",
  });
}

/** @param {number} ms */
function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** @param {readonly number[]} sorted @param {number} q */
function quantileOf(sorted, q) {
  return Number(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]);
}
