// @ts-check

/**
 * @typedef {import("ioredis").Redis} Redis
 * @typedef {import("../contenders/redis.mjs").Decide} Decide
 */

/**
 * Calls of many keys in turn, so many of them under way at any time.
 * @param {Decide} decide
 * @param {readonly string[]} keys
 * @param {number} inFlight
 * @param {number} [cost]
 */
export function calls(decide, keys, inFlight, cost) {
  let next = 0;
  return {
    async run(/** @type {number} */ decisions) {
      let allowed = 0;
      let left = decisions;
      const worker = async () => {
        while (left-- > 0) {
          if (await decide(/** @type {string} */ (keys[next++ % keys.length]), cost)) allowed++;
        }
      };
      await Promise.all(Array.from({ length: inFlight }, worker));
      return allowed;
    },
  };
}

/**
 * Of all so far: the CPU of scripts, that of the main thread with its network, and the scripts called.
 * @param {Redis} redis
 * @returns {Promise<{ cpuUs: number, threadUs: number, calls: number }>}
 */
export async function scriptStats(redis) {
  const [commands, cpu] = [await redis.info("commandstats"), await redis.info("cpu")];
  let [cpuUs, sent, threadUs] = [0, 0, 0];
  for (const [, calls, usec] of commands.matchAll(/cmdstat_(?:evalsha|eval|fcall):calls=(\d+),usec=(\d+)/g)) {
    cpuUs += Number(usec);
    sent += Number(calls);
  }
  for (const [, seconds] of cpu.matchAll(/used_cpu_(?:sys|user)_main_thread:([\d.]+)/g)) {
    threadUs += Number(seconds) * 1e6;
  }
  return { cpuUs, threadUs, calls: sent };
}
