// @ts-check
import { concurrent, createLimiter, slidingLog } from "sluice";
import { createBudget } from "sluice/llm";
import { redisStore } from "sluice/redis";
import { race } from "../lib/race.mjs";
import { calls, scriptStats } from "../lib/redis-calls.mjs";
import { startRedis } from "../lib/redis-server.mjs";
import { ratio, spread } from "../lib/stats.mjs";
import { keysOf } from "../lib/traffic.mjs";
import { byId } from "./memory.mjs";

/** @typedef {(user: string) => Promise<boolean>} Call whether it was admitted */

export const title = "Budgets for LLM calls";
export const about =
  "`reserve` and `settle` of a budget on Redis, beside one `tryAcquire` of the same limits: two atomic steps that " +
  "each change what the other's one step changes. One Node process and one Redis, by a Unix socket.";

/** What a call reserves, by kind and in all; and in micro-dollars at a dollar and two per million. */
const reserved = { inputTokens: 100, outputTokens: 300 };
const TOKENS = 400;
const MICRO_DOLLARS = 700;
const prices = { m: { input: 1, output: 2 } };
/** What a call then uses, which is less. */
const USED = { inputTokens: 90, outputTokens: 120 };

const USERS = 200;
const IN_FLIGHT = 100;
const MOST = 3;

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, onProgress }) {
  const server = await startRedis();
  const admin = server.connect();
  const pairs = pairsOn(redisStore(server.connect()), 1_000_000);
  const users = keysOf(USERS);
  const contenders = pairs.flatMap(({ id, label, take, reserve }) => [
    { ...calls(take, users, IN_FLIGHT), id: `${id}-take`, label: `tryAcquire, ${label}` },
    { ...calls(reserve, users, IN_FLIGHT), id: `${id}-reserve`, label: `reserve + settle, ${label}` },
  ]);
  const laps = await race(contenders, {
    rounds,
    roundMs,
    probe: () => scriptStats(admin),
    onProgress: (done, total) => onProgress(done / total),
  });
  await server.stop();
  const times = (/** @type {string} */ id, /** @type {string} */ beside) =>
    ratio(byId(laps, id).probes.cpuUs ?? [], byId(laps, beside).probes.cpuUs ?? []);

  return {
    sections: [
      {
        id: "llm",
        title: `${USERS} users, ${IN_FLIGHT} calls in flight, all admitted`,
        note:
          "A limit whose window is longer than the lease, two minutes, holds what is reserved apart from what it " +
          "counts, so that a crash gives it back; the others count it at once. The ratio is of Redis' CPU.",
        columns: [
          { key: "redis", title: "CPU of Redis", unit: "us" },
          { key: "ratio", title: "times tryAcquire", unit: "ratio" },
          { key: "trips", title: "round trips", unit: "count" },
        ],
        rows: laps.map(({ id, label, probes }) => ({
          id,
          label,
          cells: {
            redis: spread(probes.cpuUs ?? []),
            ratio: times(id, id.replace("-reserve", "-take")),
            trips: spread(probes.calls ?? []).median,
          },
        })),
      },
    ],
    targets: pairs.map(({ id, label }) => ({
      id: `llm-${id}`,
      claim: `reserve + settle beside one tryAcquire, CPU of Redis, ${label}`,
      wanted: /** @type {const} */ ("at most"),
      bound: MOST,
      value: times(`${id}-reserve`, `${id}-take`).median,
      unit: /** @type {const} */ ("ratio"),
    })),
  };
}

/**
 * Limits that admit so many calls of each user, each kind as the rules of a limiter and as those of a budget.
 * @param {import("sluice").Store} store
 * @param {number} most
 * @param {import("sluice/llm").Usage} [usage] that calls settle
 * @returns {{ id: string, label: string, take: Call, reserve: Call }[]}
 */
export function pairsOn(store, most, usage = USED) {
  const by = ["user"];
  const tokens = { name: "tokens", limit: most * TOKENS, by };
  const minute = { limit: { ...tokens, unit: "tokens", window: "1m" }, rule: { ...tokens, window: "1m" } };
  const hour = { limit: { ...tokens, unit: "tokens", window: "1h" }, rule: { ...tokens, window: "1h" } };
  const day = {
    limit: { name: "day", unit: "usd", limit: (most * MICRO_DOLLARS) / 1e6, window: "1d", by },
    rule: { name: "day", limit: most * TOKENS, window: "1d", by },
  };
  const slots = { name: "parallel", limit: most * TOKENS, lease: "2m", by };
  const kinds = /** @type {const} */ ([
    ["minute", "one limit of a minute", [minute]],
    ["hour", "one limit of an hour", [hour]],
    ["three", "tokens of a minute, dollars of a day, parallel calls", [minute, day]],
  ]);
  return kinds.map(([id, label, windows]) => {
    const isThree = windows.length > 1;
    // A slot is a call's, not a token's: beside slots, all rules count calls.
    const cost = isThree ? 1 : TOKENS;
    const rules = windows.map(({ rule }) => slidingLog(/** @type {any} */ ({ ...rule, limit: most * cost })));
    const limiter = createLimiter({
      name: `take-${id}`,
      store,
      rules: isThree ? [...rules, concurrent(/** @type {any} */ (slots))] : rules,
    });
    const limits = windows.map(({ limit }) => limit);
    const budget = createBudget({
      name: `reserve-${id}`,
      store,
      prices,
      limits: /** @type {any} */ (isThree ? [...limits, { ...slots, unit: "concurrent" }] : limits),
    });
    return {
      id,
      label,
      take: async (user) => (await limiter.tryAcquire({ user }, cost)).allowed,
      async reserve(user) {
        const reservation = await budget.tryReserve({ user, model: "m", ...reserved });
        await reservation.settle(usage);
        return reservation.allowed;
      },
    };
  });
}
