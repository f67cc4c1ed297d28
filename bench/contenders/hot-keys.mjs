// @ts-check
import { createLimiter, slidingLog } from "sluice";
import { keysOf } from "../lib/traffic.mjs";

/**
 * Decisions on 16 hot keys, 256 under way at a time.
 * @param {string} id
 * @param {string} label
 * @param {import("sluice").Store} store
 * @returns {import("../lib/race.mjs").Contender}
 */
export function hotKeys(id, label, store) {
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
