// @ts-check
// Limiters that have seen a number of keys, for weighing them.
import { createRequire } from "node:module";
import { ThrottlerStorageService } from "@nestjs/throttler";
import { MemoryStore as ExpressStore } from "express-rate-limit";
import { MemoryStore as HonoStore } from "hono-rate-limiter";
import { RateLimiter } from "limiter";
import { RateLimiterMemory } from "rate-limiter-flexible";
import {
  createLimiter,
  fixedWindow,
  memoryStore,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "sluice";

const FastifyStore = createRequire(import.meta.url)("@fastify/rate-limit/store/LocalStore");

const LIMIT = 1_000_000;
const WINDOW_MS = 3_600_000;

/**
 * @typedef {object} Holder
 * @property {string} label
 * @property {(keys: readonly string[], requests: number) => unknown} hold answers what keeps the state alive
 */

/** @type {Record<string, Holder>} */
export const holders = {
  map: {
    label: "floor: Map from key to a small number",
    hold: (keys) => new Map(keys.map((key, n) => [key, n])),
  },
  "sluice-fixed": {
    label: "Sluice fixedWindow",
    hold: (keys) => sluice(fixedWindow({ limit: LIMIT, window: WINDOW_MS }), keys),
  },
  "sluice-counter": {
    label: "Sluice slidingCounter",
    hold: (keys) => sluice(slidingCounter({ limit: LIMIT, window: WINDOW_MS }), keys),
  },
  "sluice-bucket": {
    label: "Sluice tokenBucket",
    hold: (keys) => sluice(tokenBucket({ limit: LIMIT, window: WINDOW_MS }), keys),
  },
  "sluice-cells": {
    label: "Sluice slidingCells, 10 cells",
    hold: (keys) => sluice(slidingCells({ limit: LIMIT, window: WINDOW_MS, cells: 10 }), keys),
  },
  "sluice-log": {
    label: "Sluice slidingLog, one request each",
    hold: (keys) => sluice(slidingLog({ limit: LIMIT, window: WINDOW_MS }), keys),
  },
  log: {
    label: "Sluice slidingLog",
    hold: (keys, requests) => sluice(slidingLog({ limit: LIMIT, window: WINDOW_MS }), keys, requests),
  },
  "rate-limiter-flexible": {
    label: "rate-limiter-flexible RateLimiterMemory",
    async hold(keys) {
      const limiter = new RateLimiterMemory({ points: LIMIT, duration: WINDOW_MS / 1000 });
      for (const key of keys) await limiter.consume(key);
      return limiter;
    },
  },
  "express-rate-limit": {
    label: "express-rate-limit MemoryStore",
    async hold(keys) {
      const store = new ExpressStore();
      store.init(/** @type {import("express-rate-limit").Options} */ ({ windowMs: WINDOW_MS }));
      for (const key of keys) await store.increment(key);
      return store;
    },
  },
  "hono-rate-limiter": {
    label: "hono-rate-limiter MemoryStore",
    async hold(keys) {
      const store = new HonoStore();
      store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: WINDOW_MS }));
      for (const key of keys) await store.increment(key);
      return store;
    },
  },
  "fastify-rate-limit": {
    label: "@fastify/rate-limit LocalStore",
    hold(keys) {
      const store = new FastifyStore(false, false, keys.length);
      for (const key of keys) store.incr(key, () => {}, WINDOW_MS, LIMIT);
      return store;
    },
  },
  "nestjs-throttler": {
    label: "@nestjs/throttler ThrottlerStorageService",
    async hold(keys, requests) {
      const storage = new ThrottlerStorageService();
      for (let n = 0; n < requests; n++) {
        for (const key of keys) await storage.increment(key, WINDOW_MS, LIMIT, WINDOW_MS, "default");
      }
      return storage;
    },
  },
  limiter: {
    label: "limiter RateLimiter, one per key in a Map",
    hold(keys) {
      const limiters = new Map();
      for (const key of keys) {
        const limiter = new RateLimiter({ tokensPerInterval: LIMIT, interval: WINDOW_MS });
        limiter.tryRemoveTokens(1);
        limiters.set(key, limiter);
      }
      return limiters;
    },
  },
};

/**
 * @param {import("sluice").RuleInput} rules
 * @param {readonly string[]} keys
 * @param {number} [requests]
 */
function sluice(rules, keys, requests = 1) {
  let now = 1_700_000_000_000;
  const store = memoryStore({ clock: () => now });
  const limiter = createLimiter({ rules, store });
  for (let n = 0; n < requests; n++) {
    now += 1;
    for (const key of keys) limiter.tryAcquireSync(key);
  }
  return limiter;
}
