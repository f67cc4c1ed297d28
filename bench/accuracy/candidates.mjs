// @ts-check
// Every algorithm of ours and of the peers that answers at once, on virtual time. Peers are the real ones: their
// clocks are told the time. Those on Redis are in shared.mjs, those that make callers wait in queues.mjs.
import { createRequire } from "node:module";
import { ThrottlerStorageService } from "@nestjs/throttler";
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
import { algorithmsOnRedis, clientClocks, serverClocks } from "./shared.mjs";

/**
 * @typedef {import("./play.mjs").Candidate} Candidate
 * @typedef {import("./play.mjs").Rule} Rule
 */

const FastifyStore = createRequire(import.meta.url)("@fastify/rate-limit/store/LocalStore");

/** @type {{ name: string, algorithm: string, rules: (rule: Rule) => import("sluice").RuleInput }[]} */
const algorithms = [
  {
    name: "slidingLog",
    algorithm: "exact log",
    rules: ({ limit, windowMs }) => slidingLog({ limit, window: windowMs }),
  },
  {
    name: "slidingCells, strict",
    algorithm: "60 cells in full",
    rules: ({ limit, windowMs }) => slidingCells({ limit, window: windowMs }),
  },
  {
    name: "slidingCells, weighted",
    algorithm: "60 cells, oldest by its share",
    rules: ({ limit, windowMs }) => slidingCells({ limit, window: windowMs, mode: "weighted" }),
  },
  {
    name: "slidingCounter",
    algorithm: "two windows, the former by its share",
    rules: ({ limit, windowMs }) => slidingCounter({ limit, window: windowMs }),
  },
  {
    name: "fixedWindow",
    algorithm: "window of the clock",
    rules: ({ limit, windowMs }) => fixedWindow({ limit, window: windowMs }),
  },
  {
    name: "tokenBucket",
    algorithm: "bucket of the limit's size",
    rules: ({ limit, windowMs }) => tokenBucket({ limit, window: windowMs }),
  },
  {
    name: "leakyBucket",
    algorithm: "evenly spaced",
    rules: ({ limit, windowMs }) => leakyBucket({ limit, window: windowMs }),
  },
];

/** @type {Candidate[]} */
const own = algorithms.map(({ name, algorithm, rules }) => ({
  id: name,
  label: `Sluice ${name}`,
  algorithm,
  nodes: "one",
  weights: true,
  make(rule) {
    const limiter = createLimiter({ rules: rules(rule), store: memoryStore({ clock: () => Date.now() }) });
    return (key, cost) => limiter.tryAcquireSync(key, cost).allowed;
  },
}));

/** @type {(label: string, algorithm: string, blockMs: (windowMs: number) => number) => Candidate} */
function throttler(label, algorithm, blockMs) {
  return {
    id: label,
    label,
    algorithm,
    make({ limit, windowMs }) {
      const storage = new ThrottlerStorageService();
      return async (key) =>
        !(await storage.increment(key, windowMs, limit, blockMs(windowMs), "default")).isBlocked;
    },
  };
}

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
  throttler("@nestjs/throttler", "log; blocked for one more window when over", (windowMs) => windowMs),
  throttler("@nestjs/throttler, blockDuration 0", "exact log, an array of hits", () => 0),
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

/** What has no shared store of its own, or is used without one: on several nodes each counts alone. */
const apart = [...own, ...inProcess]
  .filter(({ id }) => ["slidingLog", "hono-rate-limiter", "@nestjs/throttler", "limiter"].includes(id))
  .map((candidate) => ({
    ...candidate,
    id: `${candidate.id} apart`,
    label: `${candidate.label}, in each process`,
    nodes: /** @type {const} */ ("several"),
  }));

/** @type {Candidate[]} */
export const candidates = [
  ...own,
  ...algorithmsOnRedis(algorithms),
  ...inProcess.map((candidate) => ({ ...candidate, nodes: /** @type {const} */ ("one") })),
  ...apart,
  ...serverClocks,
  ...clientClocks,
];
