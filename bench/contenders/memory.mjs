// @ts-check
// Every limiter that keeps its counts in the process, used as its documentation says: what answers by a
// promise is awaited, a refusal is caught where it is thrown. Each has a loop of its own, so that the
// engine optimises each for its one limiter, as it would in an application.
import { createRequire } from "node:module";
import { ThrottlerStorageService } from "@nestjs/throttler";
import Bottleneck from "bottleneck";
import { MemoryStore as ExpressStore } from "express-rate-limit";
import { MemoryStore as HonoStore } from "hono-rate-limiter";
import { RateLimiter } from "limiter";
import pThrottle from "p-throttle";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { createLimiter, memoryStore, slidingLog } from "sluice";
import { Traffic } from "../lib/traffic.mjs";

/**
 * @typedef {import("../lib/race.mjs").Contender} Contender
 */

/**
 * @typedef {object} Setting
 * @property {readonly string[]} keys
 * @property {number} limit
 * @property {number} windowMs
 * @property {number} demand how many times the limit is asked for
 * @property {boolean} [staggered] whether keys begin one after the other, over the first window
 * @property {number} [cost] of each request; the limit is as many times higher
 * @property {import("sluice").RuleInput[]} [rules] Sluice's, instead of one exact log
 * @property {number} [maxKeys]
 */

const FastifyStore = createRequire(import.meta.url)("@fastify/rate-limit/store/LocalStore");

/** The least any limiter in a process must do: find the key, read the clock. @type {(s: Setting) => Contender} */
export function floor(setting) {
  const traffic = new Traffic(setting);
  const map = new Map(setting.keys.map((key) => [key, 1]));
  return {
    id: "floor",
    label: "floor: Map lookup and clock read",
    run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if ((map.get(traffic.next()) ?? 0) <= Date.now()) allowed++;
      }
      return allowed;
    },
  };
}

/** @type {(s: Setting) => Contender} */
export function sluiceSync(setting) {
  const traffic = new Traffic(setting);
  const limiter = sluiceLimiter(setting);
  const { cost = 1 } = setting;
  return {
    id: "sluice-sync",
    label: "Sluice slidingLog, tryAcquireSync",
    run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if (limiter.tryAcquireSync(traffic.next(), cost).allowed) allowed++;
      }
      return allowed;
    },
  };
}

/** @type {(s: Setting) => Contender} */
export function sluiceAsync(setting) {
  const traffic = new Traffic(setting);
  const limiter = sluiceLimiter(setting);
  return {
    id: "sluice-async",
    label: "Sluice slidingLog, await tryAcquire",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if ((await limiter.tryAcquire(traffic.next())).allowed) allowed++;
      }
      return allowed;
    },
  };
}

/**
 * Each contender's time goes on where it stopped when its turn ended, which is back from where the one before
 * it stopped. Sluice's own clock, which reads `Date.now()` too, would not follow; so it is given this one.
 * @param {Setting} setting
 */
function sluiceLimiter({ limit, windowMs, cost = 1, rules, maxKeys = 1_000_000 }) {
  return createLimiter({
    rules: rules ?? slidingLog({ limit: limit * cost, window: windowMs }),
    store: memoryStore({ maxKeys, clock: () => Date.now() }),
  });
}

/** @type {(s: Setting) => Contender} */
export function rateLimiterFlexible(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs, cost = 1 } = setting;
  const limiter = new RateLimiterMemory({ points: limit * cost, duration: windowMs / 1000 });
  return {
    id: "rate-limiter-flexible",
    label: "rate-limiter-flexible RateLimiterMemory.consume",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        try {
          await limiter.consume(traffic.next(), cost);
          allowed++;
        } catch {
          // refused
        }
      }
      return allowed;
    },
  };
}

/** @type {(s: Setting) => Contender} */
export function expressRateLimit(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs } = setting;
  const store = new ExpressStore();
  // The middleware calls `init` with all its options; the store reads this one.
  store.init(/** @type {import("express-rate-limit").Options} */ ({ windowMs }));
  return {
    id: "express-rate-limit",
    label: "express-rate-limit MemoryStore.increment",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if ((await store.increment(traffic.next())).totalHits <= limit) allowed++;
      }
      return allowed;
    },
    close: () => store.shutdown(),
  };
}

/** @type {(s: Setting) => Contender} */
export function honoRateLimiter(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs } = setting;
  const store = new HonoStore();
  store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs }));
  return {
    id: "hono-rate-limiter",
    label: "hono-rate-limiter MemoryStore.increment",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if ((await store.increment(traffic.next())).totalHits <= limit) allowed++;
      }
      return allowed;
    },
    close: () => store.shutdown(),
  };
}

/** @type {(s: Setting) => Contender} */
export function fastifyRateLimit(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs } = setting;
  const store = new FastifyStore(false, false);
  let allowed = 0;
  /** @type {(error: Error | null, answer: { current: number, ttl: number }) => void} */
  const count = (_error, { current }) => {
    if (current <= limit) allowed++;
  };
  return {
    id: "fastify-rate-limit",
    label: "@fastify/rate-limit LocalStore.incr",
    run(decisions) {
      allowed = 0;
      for (let n = 0; n < decisions; n++) store.incr(traffic.next(), count, windowMs, limit);
      return allowed;
    },
  };
}

/** Its guard blocks for one more window unless told, so the storage is asked to. @type {(s: Setting) => Contender} */
export function nestThrottler(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs } = setting;
  const storage = new ThrottlerStorageService();
  return {
    id: "nestjs-throttler",
    label: "@nestjs/throttler ThrottlerStorageService.increment",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        const answer = await storage.increment(traffic.next(), windowMs, limit, windowMs, "default");
        if (!answer.isBlocked) allowed++;
      }
      return allowed;
    },
    close: () => storage.onApplicationShutdown(),
  };
}

/** @type {(s: Setting) => Contender} */
export function limiterPackage(setting) {
  const traffic = new Traffic(setting);
  const { limit, windowMs } = setting;
  const limiters = new Map(
    setting.keys.map((key) => [key, new RateLimiter({ tokensPerInterval: limit, interval: windowMs })]),
  );
  return {
    id: "limiter",
    label: "limiter RateLimiter.tryRemoveTokens, one per key",
    run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if (limiters.get(traffic.next())?.tryRemoveTokens(1)) allowed++;
      }
      return allowed;
    },
  };
}

/** A queue: what does not fit waits, so it is only asked for what fits. @type {(s: Setting) => Contender} */
export function pThrottlePackage(setting) {
  const traffic = new Traffic(setting);
  const throttled = new Map(
    setting.keys.map((key) => {
      const throttle = pThrottle({ limit: setting.limit, interval: setting.windowMs });
      return [key, throttle(() => true)];
    }),
  );
  return {
    id: "p-throttle",
    label: "p-throttle, one per key",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n++) {
        if (await throttled.get(traffic.next())?.()) allowed++;
      }
      return allowed;
    },
  };
}

/**
 * A queue that starts its jobs by timers: awaited one by one it would show the timer, so 500 are under way
 * at a time. Its refills are timers as well; a reservoir that never runs out stands in for them.
 * @type {(s: Setting) => Contender}
 */
export function bottleneck(setting) {
  const traffic = new Traffic(setting);
  const group = new Bottleneck.Group({ reservoir: 1e9 });
  const job = async () => true;
  return {
    id: "bottleneck",
    label: "bottleneck Group.key().schedule, 500 at a time",
    async run(decisions) {
      let allowed = 0;
      for (let n = 0; n < decisions; n += 500) {
        const batch = Array.from({ length: Math.min(500, decisions - n) }, () =>
          group.key(traffic.next()).schedule(job),
        );
        allowed += (await Promise.all(batch)).filter(Boolean).length;
      }
      return allowed;
    },
  };
}
