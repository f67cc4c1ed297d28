// @ts-check
// A part of the suite on Redis: what Redis' CPU per exact decision grows with.
import { createLimiter, slidingLog } from "sluice";
import { redisStore } from "sluice/redis";
import { race } from "../lib/race.mjs";
import { calls } from "../lib/redis-calls.mjs";
import { spread } from "../lib/stats.mjs";
import { keysOf, START } from "../lib/traffic.mjs";

/**
 * @typedef {import("ioredis").Redis} Redis
 * @typedef {import("../lib/race.mjs").Contender} Contender
 * @typedef {import("../lib/report.mjs").Measured} Measured
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {import("../lib/report.mjs").Target} Target
 * @typedef {import("../lib/stats.mjs").Spread} Spread
 */

const IN_FLIGHT = 100;
const DAY_MS = 86_400_000;
const POWERS = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

/**
 * One quantity that grows, and what is measured at each of its values.
 * @typedef {object} Quantity
 * @property {string} id
 * @property {string} title
 * @property {string} note
 * @property {number[]} values
 * @property {(value: number) => Setting} setting
 * @property {boolean} [flat] whether the project asks that nothing grows with it
 */

/**
 * @typedef {object} Setting
 * @property {import("sluice").RuleInput[]} rules
 * @property {readonly string[]} keys asked in turn
 * @property {number} cost
 * @property {number} stepMs how much time passes with each call, by an injected clock
 * @property {number} warmUp how many calls bring it to the state that is measured
 * @property {number} [filled] how many requests each key holds before, each at a time of its own
 */

/** A batch has one time, so that each of these must be asked once in it for each request to have its own. */
const SLIDING_KEYS = 20;
const atItsLimit = `${SLIDING_KEYS} keys just within their limit, the window sliding, one call for each.`;

/**
 * As one request enters another leaves. Room for two more, so that all are admitted whatever batches they make.
 * @param {number} limit requests
 * @param {number} cost of each
 * @returns {Setting}
 */
function sliding(limit, cost) {
  return {
    rules: [slidingLog({ limit: limit * cost, window: DAY_MS })],
    keys: keysOf(SLIDING_KEYS),
    cost,
    stepMs: DAY_MS / (limit - 2) / SLIDING_KEYS,
    warmUp: SLIDING_KEYS * 10,
    filled: Math.round(limit * 1.2),
  };
}

/** @param {number} count @returns {Setting} half of what a limit of 100 per minute allows */
function manyKeys(count) {
  const rules = [slidingLog({ limit: 100, window: 60_000 })];
  return { rules, keys: keysOf(count), cost: 1, stepMs: 60_000 / (50 * count), warmUp: count };
}

/** @param {number} count of windows that differ in length @returns {Setting} */
function manyRules(count) {
  const rules = Array.from({ length: count }, (_, n) =>
    slidingLog({ name: `w${n}`, limit: 100 * (n + 1), window: 60_000 * (n + 1) }),
  );
  const keys = keysOf(100);
  return { rules, keys, cost: 1, stepMs: 60_000 / (50 * keys.length), warmUp: 55 * keys.length * count };
}

/** @param {number} most @returns {Quantity[]} */
function quantities(most) {
  const powers = POWERS.filter((value) => value <= most);
  return [
    {
      id: "limit",
      title: "Limit, on Redis",
      note: atItsLimit,
      values: powers,
      setting: (limit) => sliding(limit, 1),
      flat: true,
    },
    {
      id: "cost",
      title: "Cost of one request, on Redis",
      note: atItsLimit,
      values: [1, ...powers],
      setting: (cost) => sliding(100, cost),
      flat: true,
    },
    {
      id: "keys",
      title: "Number of keys, on Redis",
      note: `${IN_FLIGHT} calls in flight, keys in turn, half the demand that a limit of 100 per minute allows.`,
      values: [1, ...powers.filter((value) => value <= 100_000)],
      setting: manyKeys,
    },
    {
      id: "rules",
      title: "Number of rules, on Redis",
      note: "Exact windows over one string key, decided together; 100 keys and calls in flight, half the demand that the limits allow.",
      values: [1, 2, 3, 5, 8],
      setting: manyRules,
    },
  ];
}

/**
 * @param {() => Redis} connect
 * @param {import("../lib/race.mjs").Effort} effort
 * @param {number} scale
 * @returns {Promise<Measured>}
 */
export async function growOnRedis(connect, { onProgress = () => {}, ...effort }, scale) {
  /** @type {Measured} */
  const measured = { sections: [], targets: [] };
  const all = quantities(Math.max(100, 1_000_000 * scale));
  for (const [n, quantity] of all.entries()) {
    const { id, values, setting, flat } = quantity;
    const laps = await race(
      await Promise.all(values.map((value) => contender(connect(), `${id}-${value}`, setting(value)))),
      { ...effort, onProgress: (done, total) => onProgress(n + done / total, all.length) },
    );
    const cells = Object.fromEntries(
      values.map((value, n) => [String(value), spread(laps[n]?.probes.cpuUs ?? [])]),
    );
    measured.sections.push(section(quantity, cells));
    if (flat) measured.targets.push(target(id, cells));
  }
  return measured;
}

/** @param {Redis} redis @param {string} name @param {Setting} setting @returns {Promise<Contender>} */
async function contender(redis, name, setting) {
  const { rules, keys, cost, stepMs, warmUp, filled = 0 } = setting;
  const limiterAt = (/** @type {() => number} */ clock) =>
    createLimiter({ name, store: redisStore(redis, { clock }), rules });
  let now = START;
  if (filled > 0) {
    await fill(redis, setting, (time) => limiterAt(() => time), `/${name}/`);
    now += filled * stepMs * keys.length;
  }
  const limiter = limiterAt(() => Math.floor(now));
  const decide = async (/** @type {string} */ key) => {
    now += stepMs;
    return (await limiter.tryAcquire(key, cost)).allowed;
  };
  return {
    ...calls(decide, keys, filled > 0 ? keys.length : IN_FLIGHT),
    id: name,
    label: name,
    warmUp,
    close: () => redis.disconnect(),
  };
}

/**
 * Fills one key, each request at its own time and so by its own store, and copies it to the others.
 * @param {Redis} redis
 * @param {Setting} setting
 * @param {(time: number) => import("sluice").Limiter} limiterAt
 * @param {string} path what its Redis key has in it
 */
async function fill(redis, { keys, cost, stepMs, filled = 0 }, limiterAt, path) {
  const [first = "", ...others] = keys;
  for (let n = 0; n < filled; n += 1_000) {
    const requests = Array.from({ length: Math.min(1_000, filled - n) }, (_, m) => n + m);
    const times = requests.map((request) => START + Math.floor(request * stepMs * keys.length));
    await Promise.all(times.map((time) => limiterAt(time).tryAcquire(first, cost)));
  }
  const [source = ""] = await redis.keys(`*{${first}}*${path}*`);
  for (const key of others) await redis.call("COPY", source, source.replace(`{${first}}`, `{${key}}`));
}

/** @param {Quantity} quantity @param {Record<string, Spread>} cells @returns {Section} */
function section({ id, title, note, values }, cells) {
  return {
    id: `redis-${id}`,
    title,
    note: `Redis' CPU per decision of the exact log. ${note}`,
    columns: values.map((value) => ({
      key: String(value),
      title: value.toLocaleString("en-US"),
      unit: "us",
    })),
    rows: [{ id: "sluice-log", label: "Sluice slidingLog", cells }],
  };
}

/** @param {string} id @param {Record<string, Spread>} cells @returns {Target} */
function target(id, cells) {
  const medians = Object.values(cells).map(({ median }) => median);
  return {
    id: `redis-${id}-flat`,
    claim: `On Redis, CPU of Redis per exact decision over all values of ${id}: most over least`,
    wanted: "at most",
    bound: 1.25,
    value: Math.max(...medians) / Math.min(...medians),
    unit: "ratio",
  };
}
