// @ts-check
// Many processes that share one limit on one Redis, and what they did together.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { slidingLog } from "sluice";
import { redisStore } from "sluice/redis";

/**
 * @typedef {object} SharedLoad
 * @property {{ port: number } | { path: string }} redis where it is
 * @property {number} processes
 * @property {boolean} leases whether each has a tier with leases in front of Redis
 * @property {number} limit
 * @property {number} window
 * @property {number} load how much is asked for by all together, as a multiple of the limit
 * @property {number} durationMs
 * @property {boolean} [isFull] whether the limit was taken evenly in the window before
 */

/**
 * @typedef {object} SharedOutcome
 * @property {number} calls
 * @property {number} failed
 * @property {number} admitted
 * @property {number} ideal how many an exact log would have admitted of the same calls, had it heard of each at once
 * @property {number} roundTrips how many scripts Redis was sent
 * @property {number} most that was certainly admitted in one window
 */

/**
 * Runs processes on one Redis, merges what they admitted and counts every window.
 * @param {SharedLoad} options
 * @returns {Promise<SharedOutcome>}
 */
export async function runProcesses(options) {
  const { redis, processes, load, limit, window, durationMs, isFull = false } = options;
  const client = new Redis(redis);
  await client.flushall();
  // Long enough for all of them to have started on a busy machine.
  const startAt = Date.now() + 1500 + 250 * processes;
  const before = isFull ? await fill(client, options, startAt) : [];
  await client.config("RESETSTAT");
  const own = { ...options, perSecond: (load * limit * 1000) / window / processes, startAt };
  const script = fileURLToPath(new URL("./tierProcess.mjs", import.meta.url));
  const run = promisify(execFile);
  const outputs = await Promise.all(
    Array.from({ length: processes }, () =>
      run(process.execPath, [script, JSON.stringify(own)], {
        maxBuffer: 2 ** 28,
        timeout: durationMs + 60_000,
      }),
    ),
  );
  const stats = await client.info("commandstats");
  client.disconnect();
  /** @type {{ admitted: [number, number][], calls: number[], failed: number }[]} */
  const results = outputs.map(({ stdout }) => JSON.parse(stdout));
  const admitted = results.flatMap((result) => result.admitted);
  const calls = results.flatMap((result) => result.calls);
  return {
    calls: calls.length,
    failed: results.reduce((total, result) => total + result.failed, 0),
    ideal: idealOf(before, calls, limit, window),
    admitted: admitted.length,
    roundTrips: callsOf(stats, "evalsha") + callsOf(stats, "eval"),
    most: mostCertainly([...before.map((at) => /** @type {const} */ ([at, at])), ...admitted], window),
  };
}

/** In so many equal steps a window is filled. */
const STEPS = 3000;

/**
 * Takes the limit, evenly in the window before the start.
 * @param {Redis} client
 * @param {SharedLoad} options
 * @param {number} startAt
 * @returns {Promise<number[]>} when each was taken
 */
async function fill(client, { limit, window }, startAt) {
  let now = 0;
  const store = redisStore(client, { clock: () => now });
  const rule = { ...slidingLog({ limit, window }), path: "shared/hot" };
  /** @type {number[]} */
  const times = [];
  for (let step = 1; step <= STEPS; step++) {
    now = startAt - window + Math.floor((window * (step - 1)) / STEPS);
    const cost = Math.floor((limit * step) / STEPS) - times.length;
    if (cost === 0) continue;
    await store.decide([{ rule, key: "hot", cost, partition: "hot" }], true);
    for (let n = 0; n < cost; n++) times.push(now);
  }
  // The start is yet to come, and a short window's time to live would be over by then.
  for (const key of await client.keys("*")) await client.persist(key);
  return times;
}

/**
 * @param {string} stats
 * @param {string} command
 */
function callsOf(stats, command) {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

/**
 * @param {readonly number[]} before
 * @param {readonly number[]} calls
 * @param {number} limit
 * @param {number} window
 */
function idealOf(before, calls, limit, window) {
  const admitted = [...before];
  for (const at of [...calls].sort((a, b) => a - b)) {
    const left = admitted[admitted.length - limit];
    if (left === undefined || at - left >= window) admitted.push(at);
  }
  return admitted.length - before.length;
}

/**
 * Counts what lies inside a window with both ends, for the windows that begin with each admission.
 * @param {readonly (readonly [number, number])[]} admitted
 * @param {number} window
 */
function mostCertainly(admitted, window) {
  const froms = admitted.map(([from]) => from).sort((a, b) => a - b);
  const tos = admitted.map(([, to]) => to).sort((a, b) => a - b);
  let most = 0;
  let end = 0;
  froms.forEach((from, before) => {
    while (end < tos.length && Number(tos[end]) < from + window) end++;
    if (before === 0 || froms[before - 1] !== from) most = Math.max(most, end - before);
  });
  return most;
}
