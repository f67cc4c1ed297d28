// @ts-check
// Every limiter on Redis, used as its documentation says, each with a connection of its own.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { Ratelimit } from "@upstash/ratelimit";
import { RedisStore as ExpressRedisStore } from "rate-limit-redis";
import { RateLimiterRedis } from "rate-limiter-flexible";
import { createLimiter, slidingCells, slidingLog } from "sluice";
import { redisStore } from "sluice/redis";
import { noteScripts } from "./notes.mjs";
import { upstashClient } from "./upstash.mjs";

/**
 * @typedef {import("ioredis").Redis} Redis
 * @typedef {{ limit: number, windowMs: number }} Rule
 * @typedef {(key: string, cost?: number) => Promise<boolean>} Decide
 * @typedef {{ id: string, label: string, make: (redis: Redis, rule: Rule, clock?: () => number) => Promise<Decide> | Decide }} Maker a clock stands in for the server's own
 */

const FastifyRedisStore = createRequire(import.meta.url)("@fastify/rate-limit/store/RedisStore");

/** The least any script costs: one key, one number back. @type {Maker} */
export const bareEvalsha = {
  id: "floor",
  label: "floor: bare EVALSHA",
  async make(redis) {
    const script = "return 1";
    const sha = createHash("sha1").update(script).digest("hex");
    await redis.script("LOAD", script);
    return async (key) => (await redis.evalsha(sha, 1, key)) === 1;
  },
};

/** One for each client, as an application has it. @type {WeakMap<Redis, import("sluice").Store>} */
const stores = new WeakMap();

/** @param {Redis} redis */
function storeOf(redis) {
  const store = stores.get(redis) ?? redisStore(redis);
  stores.set(redis, store);
  return store;
}

/** What the log's script takes without Sluice around it: the call that a limiter made, once more. @type {Maker} */
export const bareLog = {
  id: "floor-log",
  label: "floor: the log's script, by a bare EVALSHA",
  async make(redis, { limit, windowMs }) {
    /** @type {string[]} */
    let sent = [];
    /** @type {import("sluice/redis").ScriptRunner} */
    const runner = {
      evalsha(sha, keyCount, ...rest) {
        sent = [sha, ...rest];
        return redis.evalsha(sha, keyCount, ...rest);
      },
      eval: (script, keyCount, ...rest) => redis.eval(script, keyCount, ...rest),
    };
    const rules = slidingLog({ limit, window: windowMs });
    await createLimiter({ name: "bare-log", store: redisStore(runner), rules }).tryAcquire("a-key");
    const [sha, first, ...args] = sent;
    return async (key) => {
      const reply = await redis.evalsha(sha, 1, first.replace("a-key", key), ...args);
      return /** @type {number[]} */ (reply)[1] >= 0;
    };
  },
};

/** @param {string} id @param {string} label @param {(rule: Rule) => import("sluice").RuleInput | import("sluice").RuleInput[]} rules @returns {Maker} */
export function sluice(id, label, rules) {
  return {
    id,
    label,
    make(redis, rule, clock) {
      const store = clock === undefined ? storeOf(redis) : redisStore(redis, { clock });
      const limiter = createLimiter({ name: id, store, rules: rules(rule) });
      return async (key, cost) => (await limiter.tryAcquire(key, cost)).allowed;
    },
  };
}

export const sluiceLog = sluice("sluice-log", "Sluice slidingLog", ({ limit, windowMs }) =>
  slidingLog({ limit, window: windowMs }),
);

const sluiceThree = sluice("sluice-three", "Sluice slidingLog, three windows", ({ limit, windowMs }) =>
  [1, 2, 3].map((n) => slidingLog({ name: `w${n}`, limit: limit * n, window: windowMs * n })),
);
const sluiceZset = sluice("sluice-zset", 'Sluice slidingLog, layout "zset"', ({ limit, windowMs }) =>
  slidingLog({ limit, window: windowMs, layout: "zset" }),
);
const sluiceCells = sluice("sluice-cells", "Sluice slidingCells, strict", ({ limit, windowMs }) =>
  slidingCells({ limit, window: windowMs }),
);

/** @type {Maker} */
export const flexible = {
  id: "rate-limiter-flexible",
  label: "rate-limiter-flexible RateLimiterRedis",
  make(redis, { limit, windowMs }) {
    const limiter = new RateLimiterRedis({ storeClient: redis, points: limit, duration: windowMs / 1000 });
    return async (key, cost = 1) => {
      try {
        await limiter.consume(key, cost);
        return true;
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal;
        return false;
      }
    };
  },
};

/** @type {Maker} */
const upstash = {
  id: "upstash",
  label: "@upstash/ratelimit slidingWindow",
  make(redis, { limit, windowMs }) {
    const ratelimit = new Ratelimit({
      redis: upstashClient(redis),
      limiter: Ratelimit.slidingWindow(limit, `${windowMs} ms`),
    });
    return async (key) => (await ratelimit.limit(key)).success;
  },
};

/** @type {Maker} */
export const rateLimitRedis = {
  id: "rate-limit-redis",
  label: "rate-limit-redis (for express-rate-limit)",
  make(redis, { limit, windowMs }) {
    const store = new ExpressRedisStore({
      sendCommand: (command, ...args) =>
        /** @type {Promise<import("rate-limit-redis").RedisReply>} */ (
          redis.call(/** @type {string} */ (command), ...args)
        ),
    });
    store.init(/** @type {import("express-rate-limit").Options} */ ({ windowMs }));
    return async (key) => (await store.increment(key)).totalHits <= limit;
  },
};

/** @type {Maker} */
export const fastify = {
  id: "fastify-rate-limit",
  label: "@fastify/rate-limit RedisStore",
  make(redis, { limit, windowMs }) {
    const store = new FastifyRedisStore(false, false, redis);
    return (key) =>
      new Promise((resolve, reject) => {
        /** @type {(error: Error | null, answer: { current: number }) => void} */
        const answer = (error, { current }) => (error ? reject(error) : resolve(current <= limit));
        store.incr(key, answer, windowMs, limit);
      });
  },
};

/** @type {Maker[]} */
const notes = ["notes-sorted-set", "notes-hash-cells", "notes-two-keys"].map((id) => {
  const script = /** @type {typeof noteScripts[string]} */ (noteScripts[id]);
  return {
    id,
    label: script.label,
    make(/** @type {Redis} */ redis, /** @type {Rule} */ rule) {
      return (/** @type {string} */ key) => script.run(redis, `${id}:${key}`, { ...rule, now: Date.now() });
    },
  };
});

export const makers = [
  bareEvalsha,
  sluiceLog,
  sluiceThree,
  sluiceZset,
  sluiceCells,
  flexible,
  upstash,
  rateLimitRedis,
  fastify,
  ...notes,
];
