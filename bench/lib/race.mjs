// @ts-check
import { spread } from "./stats.mjs";

/**
 * @typedef {object} Contender
 * @property {string} id
 * @property {string} label
 * @property {(decisions: number) => number | Promise<number>} run makes so many decisions, tells how many were allowed
 * @property {number} [warmUp] how many decisions bring it to the state that is measured
 * @property {() => unknown} [close]
 */

/**
 * What one contender did in each round, per decision.
 * @typedef {object} Lap
 * @property {string} id
 * @property {string} label
 * @property {number[]} wallNs
 * @property {number[]} cpuNs of all threads of this process, the collector's included
 * @property {number} allowed the share of decisions that were allowed
 * @property {Record<string, number[]>} probes what the probe counted, per decision
 * @property {number} perSecond decisions
 */

/**
 * How long to measure.
 * @typedef {object} Effort
 * @property {number} rounds
 * @property {number} roundMs how long one contender runs in one round, about
 * @property {() => Promise<Record<string, number>>} [probe] counters read before and after each turn
 * @property {(done: number, total: number) => void} [onProgress]
 */

/**
 * Lets contenders run in turns, round by round, so that what else the machine does meets all of them alike.
 * Each gets a fixed number of decisions per round, found in a warm-up, and begins with an empty nursery.
 * @param {readonly Contender[]} contenders
 * @param {Effort} effort
 * @returns {Promise<Lap[]>}
 */
export async function race(contenders, { rounds, roundMs, probe = async () => ({}), onProgress = () => {} }) {
  const entries = [];
  for (const contender of contenders) {
    if (contender.warmUp !== undefined) await contender.run(contender.warmUp);
    const decisions = await calibrate(contender, roundMs);
    const lap = {
      id: contender.id,
      label: contender.label,
      wallNs: [],
      cpuNs: [],
      allowed: 0,
      probes: {},
      perSecond: 0,
    };
    entries.push({ contender, decisions, lap: /** @type {Lap} */ (lap) });
    onProgress(entries.length, contenders.length * (rounds + 1));
  }
  for (let round = 0; round < rounds; round++) {
    for (let n = 0; n < entries.length; n++) {
      const entry = entries[(n + round) % entries.length];
      if (entry === undefined) continue;
      const { contender, decisions, lap } = entry;
      globalThis.gc?.({ type: "minor" });
      const before = await probe();
      const cpu = process.cpuUsage();
      const start = process.hrtime.bigint();
      const allowed = await contender.run(decisions);
      const wall = Number(process.hrtime.bigint() - start);
      const { user, system } = process.cpuUsage(cpu);
      lap.wallNs.push(wall / decisions);
      lap.cpuNs.push(((user + system) * 1000) / decisions);
      for (const [name, value] of Object.entries(await probe())) {
        lap.probes[name] ??= [];
        lap.probes[name].push((value - Number(before[name])) / decisions);
      }
      lap.allowed += allowed / decisions / rounds;
      onProgress(contenders.length * (round + 1) + n + 1, contenders.length * (rounds + 1));
    }
  }
  for (const { contender, lap } of entries) {
    lap.perSecond = 1e9 / spread(lap.wallNs).median;
    await contender.close?.();
  }
  return entries.map(({ lap }) => lap);
}

/**
 * Warms a contender up and tells how many decisions it makes in a round.
 * @param {Contender} contender
 * @param {number} roundMs
 */
async function calibrate(contender, roundMs) {
  for (let decisions = 256; ; decisions *= 2) {
    const start = Number(process.hrtime.bigint()) / 1e6;
    await contender.run(decisions);
    const took = Number(process.hrtime.bigint()) / 1e6 - start;
    if (took >= roundMs / 2) return Math.max(1, Math.round((decisions * roundMs) / took));
  }
}
