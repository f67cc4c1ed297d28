// @ts-check
import { loadNoteScripts } from "../contenders/notes.mjs";
import { bareLog, makers, sluiceLog } from "../contenders/redis.mjs";
import { race } from "../lib/race.mjs";
import { calls, scriptStats } from "../lib/redis-calls.mjs";
import { startRedis } from "../lib/redis-server.mjs";
import { ratio, spread } from "../lib/stats.mjs";
import { keysOf, START } from "../lib/traffic.mjs";
import { byId } from "./memory.mjs";
import { growOnRedis } from "./redis-growth.mjs";

/**
 * @typedef {import("ioredis").Redis} Redis
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/race.mjs").Lap} Lap
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {import("../lib/report.mjs").Target} Target
 * @typedef {import("../contenders/redis.mjs").Decide} Decide
 * @typedef {import("../contenders/redis.mjs").Rule} Rule
 */

const rule = { limit: 1_000_000, windowMs: 3_600_000 };
/** So little that all calls but the first few are refused. */
const spent = { ...rule, limit: 5 };
const IN_FLIGHT = 1_000;

export const title = "On Redis";
export const about =
  "One Redis and one Node process on the same machine, by a Unix socket, ioredis as it comes. CPU of Redis is what " +
  "INFO commandstats counts for scripts, per decision; with its network is all CPU of its main thread. Round trips are " +
  "the commands sent, per decision.";

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, scale, onProgress }) {
  const server = await startRedis();
  const admin = server.connect();
  await loadNoteScripts(admin);
  const part = (/** @type {number} */ n) => (/** @type {number} */ done, /** @type {number} */ total) =>
    onProgress((n + done / total) / 6);

  const keys = keysOf(1_000);
  const effort = { rounds, roundMs, probe: () => scriptStats(admin) };
  const traffic = async (
    /** @type {number} */ n,
    /** @type {number} */ inFlight,
    /** @type {Rule[]} */ ...rules
  ) => {
    await admin.flushall();
    return race(await contenders(server.connect, keys, inFlight, rules), { ...effort, onProgress: part(n) });
  };
  const many = await traffic(0, IN_FLIGHT, rule);
  const mixed = await traffic(1, IN_FLIGHT, rule, spent);
  const refused = await traffic(2, IN_FLIGHT, spent);
  const lone = await traffic(3, 1, rule);
  const bytes = await weigh(server.connect, admin, Math.max(100, Math.round(1_000 * scale)));
  onProgress(5 / 6);
  const growth = await growOnRedis(server.connect, { ...effort, onProgress: part(5) }, scale);
  await server.stop();

  return {
    sections: [
      {
        ...manySection("many", "all admitted", many),
        plot: {
          kind: "bars",
          column: "redis",
          caption: "CPU of Redis per decision (shorter is better)",
          scale: "linear",
        },
      },
      manySection("mixed", "every other one refused", mixed),
      manySection("refused", "all refused", refused),
      loneSection(lone),
      bytesSection(bytes),
      ...growth.sections,
    ],
    targets: [...speedTargets(many, lone), ...bytesTargets(bytes), ...growth.targets],
  };
}

/**
 * Each limiter with so many calls under way at any time, the keys in turn under one rule and the other.
 * @param {() => Redis} connect
 * @param {readonly string[]} keys a multiple of the rules
 * @param {number} inFlight
 * @param {readonly Rule[]} rules
 * @returns {Promise<Contender[]>}
 */
async function contenders(connect, keys, inFlight, rules) {
  const list = [];
  for (const { id, label, make } of inFlight === 1 ? [bareLog, ...makers] : makers) {
    const redis = connect();
    const decides = await Promise.all(rules.map((rule) => make(redis, rule)));
    let next = 0;
    const decide = (/** @type {string} */ key) =>
      /** @type {Decide} */ (decides[next++ % decides.length])(key);
    list.push({
      ...calls(decide, keys, inFlight),
      id,
      label,
      close: () => redis.disconnect(),
    });
  }
  return list;
}

/** @param {string} id @param {string} which @param {Lap[]} laps @returns {Section} */
function manySection(id, which, laps) {
  const base = byId(laps, "sluice-log");
  return {
    id: `redis-${id}`,
    title: `1,000 keys, 1,000 calls in flight, ${which}`,
    note:
      "The ratio is to the time that `slidingLog` takes: above 1x, Sluice makes more decisions per second. Where " +
      "round trips are fewer and no batches are made, refusals are remembered in the process.",
    columns: [
      { key: "perSecond", title: "decisions/s", unit: "perSecond" },
      { key: "faster", title: "of Sluice's time", unit: "ratio" },
      { key: "allowed", title: "admitted", unit: "share" },
      { key: "redis", title: "CPU of Redis", unit: "us" },
      { key: "thread", title: "with its network", unit: "us" },
      { key: "node", title: "CPU of Node", unit: "us" },
      { key: "calls", title: "round trips", unit: "count" },
    ],
    rows: laps.map((lap) => ({
      id: lap.id,
      label: lap.label,
      cells: {
        perSecond: lap.perSecond,
        faster: ratio(lap.wallNs, base.wallNs),
        allowed: lap.allowed,
        redis: spread(lap.probes.cpuUs ?? []),
        thread: spread(lap.probes.threadUs ?? []),
        node: spread(lap.cpuNs.map((ns) => ns / 1000)),
        calls: spread(lap.probes.calls ?? []).median,
      },
    })),
  };
}

/** @param {Lap[]} laps @returns {Section} */
function loneSection(laps) {
  const base = byId(laps, "floor");
  return {
    id: "redis-lone",
    title: "A lone call",
    note:
      "One call at a time: the time until its answer is there. What Sluice itself adds is what it takes beyond the log's " +
      "script by a bare EVALSHA; a script that does nothing is the other floor.",
    columns: [
      { key: "latency", title: "latency", unit: "us" },
      { key: "floor", title: "times the floor", unit: "ratio" },
      { key: "redis", title: "CPU of Redis", unit: "us" },
    ],
    rows: laps.map((lap) => ({
      id: lap.id,
      label: lap.label,
      cells: {
        latency: spread(lap.wallNs.map((ns) => ns / 1000)),
        floor: ratio(lap.wallNs, base.wallNs),
        redis: spread(lap.probes.cpuUs ?? []),
      },
    })),
    compare: "latency",
  };
}

/**
 * Bytes in Redis per admitted request, ten keys full of them.
 * @param {() => Redis} connect
 * @param {Redis} admin
 * @param {number} requests per key
 */
async function weigh(connect, admin, requests) {
  const keys = keysOf(10);
  const weighed = makers
    .filter(({ id }) => id !== "floor")
    .map((maker) => ({ maker, cost: (/** @type {number} */ _n) => 1 }));
  const weighted = { ...sluiceLog, id: "sluice-weighted", label: "Sluice slidingLog, costs from 1 to 50" };
  const rows = [];
  for (const { maker, cost } of [
    ...weighed,
    { maker: weighted, cost: (/** @type {number} */ n) => 1 + (n % 50) },
  ]) {
    await admin.flushall();
    const redis = connect();
    let now = START;
    const decide = await maker.make(redis, { limit: requests * 50, windowMs: rule.windowMs }, () => now);
    for (let n = 0; n < requests; n++) {
      now += 60; // as 1,000 in a minute are: no two share a millisecond, and thereby an entry
      await Promise.all(keys.map((key) => decide(key, cost(n))));
    }
    let total = 0;
    for (const key of await admin.keys("*")) total += (await admin.memory("USAGE", key, "SAMPLES", 0)) ?? 0;
    redis.disconnect();
    const perKey = total / keys.length;
    rows.push({ id: maker.id, label: maker.label, cells: { perKey, perRequest: perKey / requests } });
  }
  await admin.flushall();
  return { requests, rows };
}

/** @param {{ requests: number, rows: import("../lib/report.mjs").Row[] }} weighed @returns {Section} */
function bytesSection({ requests, rows }) {
  return {
    id: "redis-bytes",
    title: `Bytes in Redis, ${requests.toLocaleString("en-US")} admitted requests per key`,
    note: "MEMORY USAGE of all keys that a limiter made, ten callers. Counters hold no requests, so theirs is per key.",
    columns: [
      { key: "perKey", title: "per key", unit: "bytes" },
      { key: "perRequest", title: "per request", unit: "bytes" },
    ],
    rows,
    compare: "perKey",
  };
}

/** @param {Lap[]} many @param {Lap[]} lone @returns {Target[]} */
function speedTargets(many, lone) {
  const own = byId(many, "sluice-log");
  const times = (/** @type {string} */ id) => ratio(byId(many, id).wallNs, own.wallNs).median;
  const peers = many.filter(({ id }) => id !== "floor" && !id.startsWith("sluice"));
  const redisCpu = (/** @type {string} */ id) => byId(many, id).probes.cpuUs ?? [];
  return [
    {
      id: "redis-flexible",
      claim: "On Redis, 1,000 in flight: times rate-limiter-flexible's decisions/s",
      wanted: "at least",
      bound: 5,
      value: times("rate-limiter-flexible"),
      unit: "ratio",
    },
    {
      id: "redis-best-peer",
      claim: "On Redis, 1,000 in flight: times the best peer's decisions/s",
      wanted: "at least",
      bound: 3,
      value: Math.min(...peers.map(({ id }) => times(id))),
      unit: "ratio",
    },
    {
      id: "redis-cpu",
      claim: "CPU of Redis per exact decision, of the sorted set's",
      wanted: "at most",
      bound: 0.4,
      value: ratio(redisCpu("sluice-log"), redisCpu("notes-sorted-set")).median,
      unit: "ratio",
    },
    {
      id: "redis-three",
      claim: "Three exact windows on Redis, in CPU of Redis of one",
      wanted: "at most",
      bound: 2,
      value: ratio(redisCpu("sluice-three"), redisCpu("sluice-log")).median,
      unit: "ratio",
    },
    {
      id: "redis-lone",
      claim: "A lone call: latency, of a bare EVALSHA's",
      wanted: "at most",
      bound: 1.1,
      value: ratio(byId(lone, "sluice-log").wallNs, byId(lone, "floor").wallNs).median,
      unit: "ratio",
    },
  ];
}

/** @param {{ rows: import("../lib/report.mjs").Row[] }} weighed @returns {Target[]} */
function bytesTargets({ rows }) {
  const perRequest = (/** @type {string} */ id) =>
    Number(rows.find((row) => row.id === id)?.cells.perRequest);
  return [
    {
      id: "redis-bytes",
      claim: "Redis memory per admitted unit-cost request at 1,000 per key",
      wanted: "at most",
      bound: 8,
      value: perRequest("sluice-log"),
      unit: "bytes",
    },
    {
      id: "redis-bytes-weighted",
      claim: "Redis memory per admitted request with weights",
      wanted: "at most",
      bound: 20,
      value: perRequest("sluice-weighted"),
      unit: "bytes",
    },
  ];
}
