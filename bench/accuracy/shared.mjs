// @ts-check
// Limiters that share their counts through a Redis, each node with a connection and an instance of its own.
import { Ratelimit } from "@upstash/ratelimit";
import { noteScripts } from "../contenders/notes.mjs";
import * as contenders from "../contenders/redis.mjs";
import { upstashClient } from "../contenders/upstash.mjs";

/**
 * @typedef {import("./play.mjs").Candidate} Candidate
 * @typedef {import("./play.mjs").Rule} Rule
 */

/**
 * Sluice's algorithms on Redis. In production Redis' TIME decides; here the lab's true time stands in for it.
 * @param {{ name: string, algorithm: string, rules: (rule: Rule) => import("sluice").RuleInput }[]} algorithms
 * @returns {Candidate[]}
 */
export function algorithmsOnRedis(algorithms) {
  return algorithms.map(({ name, algorithm, rules }) => ({
    id: `redis ${name}`,
    label: `Sluice ${name} on Redis`,
    algorithm,
    nodes: "several",
    make: (rule, { redis, server, play }) =>
      contenders.sluice(play, name, rules).make(redis(), rule, server.now),
  }));
}

/**
 * A window that is a TTL of Redis: it begins with the first hit and ends by the server's clock alone. That clock
 * cannot be told the time, so the lab ends the window by deleting the key when it has virtually expired.
 * @param {contenders.Maker} maker
 * @param {string} prefix of its keys
 * @param {string} algorithm
 * @returns {Candidate}
 */
function byTtl({ id, label, make }, prefix, algorithm) {
  return {
    id: `redis ${id}`,
    label,
    algorithm,
    nodes: "several",
    async make(rule, { redis: connect, server, play }) {
      const redis = connect();
      const decide = await make(redis, rule);
      return async (key, cost) => {
        const name = `${play}:${key}`;
        const over = server.now() >= (server.ends.get(name) ?? 0);
        if (over) server.ends.set(name, server.now() + rule.windowMs);
        // On one connection what is sent first arrives first, so the key is gone when the call comes.
        const gone = over && redis.del(`${prefix}${name}`);
        const [allowed] = await Promise.all([decide(name, cost), gone]);
        return allowed;
      };
    },
  };
}

const fromFirstHit = "window from the first hit, ended by Redis";

/** What Redis' own clock decides. */
export const serverClocks = [
  byTtl(contenders.flexible, "rlflx:", `${fromFirstHit}; refused calls count`),
  byTtl(contenders.rateLimitRedis, "rl:", fromFirstHit),
  byTtl(contenders.fastify, "fastify-rate-limit-", fromFirstHit),
];

/** @type {(label: string, algorithm: string, limiter: (rule: Rule) => import("@upstash/ratelimit").RatelimitConfig["limiter"]) => Candidate} */
const upstash = (label, algorithm, limiter) => ({
  id: `upstash ${label}`,
  label: `@upstash/ratelimit ${label}`,
  algorithm,
  remembers: true, // its cache of refusals
  weights: true,
  make(rule, { redis, play }) {
    const ratelimit = new Ratelimit({
      redis: upstashClient(redis()),
      limiter: limiter(rule),
      prefix: play,
      timeout: 0,
    });
    return async (key, cost) => (await ratelimit.limit(key, { rate: cost })).success;
  },
});

/** @type {Candidate[]} */
const notes = Object.entries(noteScripts).map(([id, { label, algorithm, run }]) => ({
  id,
  label,
  algorithm,
  make({ limit, windowMs }, { redis: connect, play }) {
    const redis = connect();
    return (key) => run(redis, `${play}:${key}`, { limit, windowMs, now: Date.now() });
  },
}));

/** What the time that a client sends along decides. */
export const clientClocks = [
  upstash("slidingWindow", "two windows, the former by its share", ({ limit, windowMs }) =>
    Ratelimit.slidingWindow(limit, `${windowMs} ms`),
  ),
  upstash("fixedWindow", "window of the clock; refused calls count", ({ limit, windowMs }) =>
    Ratelimit.fixedWindow(limit, `${windowMs} ms`),
  ),
  upstash("tokenBucket", "refilled once per window", ({ limit, windowMs }) =>
    Ratelimit.tokenBucket(limit, `${windowMs} ms`, limit),
  ),
  ...notes,
];
