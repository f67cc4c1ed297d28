// @ts-check
// Every algorithm of ours and of the peers, on virtual time. Peers are the real ones: their clocks are told
// the time, or the time is an argument of their script. Limiters whose windows are a Redis TTL
// (rate-limit-redis, rate-limiter-flexible on Redis, @fastify/rate-limit on Redis) cannot be told the time;
// they count as their memory stores do, which are here.
import { createRequire } from "node:module";
import { ThrottlerStorageService } from "@nestjs/throttler";
import { Ratelimit } from "@upstash/ratelimit";
import { MemoryStore as ExpressStore } from "express-rate-limit";
import { MemoryStore as HonoStore } from "hono-rate-limiter";
import { RateLimiter } from "limiter";
import { RateLimiterMemory } from "rate-limiter-flexible";
import {
  createLimiter,
  fixedWindow,
  leakyBucket,
  memoryStore,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "sluice";
import { noteScripts } from "../contenders/notes.mjs";
import { upstashClient } from "../contenders/upstash.mjs";

/**
 * @typedef {import("./play.mjs").Candidate} Candidate
 * @typedef {{ limit: number, windowMs: number }} Rule
 */

const FastifyStore = createRequire(import.meta.url)("@fastify/rate-limit/store/LocalStore");

/** @param {string} label @param {string} algorithm @param {(rule: { limit: number, window: number }) => import("sluice").RuleInput} builder @returns {Candidate} */
function sluice(label, algorithm, builder) {
  return {
    id: label,
    label: `Sluice ${label}`,
    algorithm,
    clock: "server",
    weights: true,
    make({ limit, windowMs }) {
      const rules = builder({ limit, window: windowMs });
      const limiter = createLimiter({ rules, store: memoryStore({ clock: () => Date.now() }) });
      return (key, cost) => limiter.tryAcquireSync(key, cost).allowed;
    },
  };
}

/** @type {Candidate[]} */
const own = [
  sluice("slidingLog", "exact log", slidingLog),
  sluice("slidingCells, strict", "60 cells in full", slidingCells),
  sluice("slidingCells, weighted", "60 cells, oldest by its share", (rule) =>
    slidingCells({ ...rule, mode: "weighted" }),
  ),
  sluice("slidingCounter", "two windows, the former by its share", slidingCounter),
  sluice("fixedWindow", "window of the clock", fixedWindow),
  sluice("tokenBucket", "bucket of the limit's size", tokenBucket),
  sluice("leakyBucket", "evenly spaced", leakyBucket),
];

/** @type {Candidate[]} */
const inProcess = [
  {
    id: "rate-limiter-flexible",
    label: "rate-limiter-flexible",
    algorithm: "window from the first hit; refused calls count",
    weights: true,
    make({ limit, windowMs }) {
      const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 });
      return (key, cost) =>
        limiter.consume(key, cost).then(
          () => true,
          () => false,
        );
    },
  },
  {
    id: "express-rate-limit",
    label: "express-rate-limit",
    algorithm: "window from the first hit",
    make({ limit, windowMs }) {
      const store = new ExpressStore();
      store.init(/** @type {import("express-rate-limit").Options} */ ({ windowMs }));
      return async (key) => (await store.increment(key)).totalHits <= limit;
    },
  },
  {
    id: "hono-rate-limiter",
    label: "hono-rate-limiter",
    algorithm: "window from the first hit",
    make({ limit, windowMs }) {
      const store = new HonoStore();
      store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs }));
      return async (key) => (await store.increment(key)).totalHits <= limit;
    },
  },
  {
    id: "fastify-rate-limit",
    label: "@fastify/rate-limit",
    algorithm: "window from the first hit, 5,000 keys",
    make({ limit, windowMs }) {
      const store = new FastifyStore(false, false);
      return (key) => {
        let allowed = false;
        /** @type {(error: Error | null, answer: { current: number }) => void} */
        const answer = (_error, { current }) => {
          allowed = current <= limit;
        };
        store.incr(key, answer, windowMs, limit);
        return allowed;
      };
    },
  },
  {
    id: "nestjs-throttler",
    label: "@nestjs/throttler",
    algorithm: "log; blocked for one more window when over",
    make({ limit, windowMs }) {
      const storage = new ThrottlerStorageService();
      return async (key) => !(await storage.increment(key, windowMs, limit, windowMs, "default")).isBlocked;
    },
  },
  {
    id: "limiter",
    label: "limiter",
    algorithm: "bucket and a window from the first hit",
    weights: true,
    make({ limit, windowMs }) {
      const limiters = new Map();
      return (key, cost) => {
        if (!limiters.has(key))
          limiters.set(key, new RateLimiter({ tokensPerInterval: limit, interval: windowMs }));
        return limiters.get(key).tryRemoveTokens(cost);
      };
    },
  },
];

/** @param {import("ioredis").Redis} redis @returns {Candidate[]} */
function onRedis(redis) {
  let made = 0;
  /** @type {(label: string, algorithm: string, limiter: (rule: Rule) => import("@upstash/ratelimit").RatelimitConfig["limiter"]) => Candidate} */
  const upstash = (label, algorithm, limiter) => ({
    id: `upstash ${label}`,
    label: `@upstash/ratelimit ${label}`,
    algorithm,
    clock: "client",
    remembers: true, // its cache of refusals
    weights: true,
    make(rule) {
      const ratelimit = new Ratelimit({
        redis: upstashClient(redis),
        limiter: limiter(rule),
        prefix: `upstash:${made++}`,
        timeout: 0,
      });
      return async (key, cost) => (await ratelimit.limit(key, { rate: cost })).success;
    },
  });
  /** @type {(id: string, script: typeof noteScripts[string]) => Candidate} */
  const note = (id, { label, algorithm, run }) => ({
    id,
    label,
    algorithm,
    clock: "client",
    make({ limit, windowMs }) {
      const prefix = `${id}:${made++}:`;
      return (key) => run(redis, prefix + key, { limit, windowMs, now: Date.now() });
    },
  });
  return [
    upstash("slidingWindow", "two windows, the former by its share", ({ limit, windowMs }) =>
      Ratelimit.slidingWindow(limit, `${windowMs} ms`),
    ),
    upstash("fixedWindow", "window of the clock; refused calls count", ({ limit, windowMs }) =>
      Ratelimit.fixedWindow(limit, `${windowMs} ms`),
    ),
    upstash("tokenBucket", "refilled once per window", ({ limit, windowMs }) =>
      Ratelimit.tokenBucket(limit, `${windowMs} ms`, limit),
    ),
    ...Object.entries(noteScripts).map(([id, script]) => note(id, script)),
  ];
}

/** @param {import("ioredis").Redis} redis @returns {Candidate[]} */
export function candidates(redis) {
  return [...own, ...inProcess, ...onRedis(redis)];
}
