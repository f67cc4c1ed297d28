// @ts-check
// The scripts that tutorials give for Redis, written as they mean them: one atomic script each, the client's
// time as an argument.
import { createHash } from "node:crypto";

/**
 * @typedef {{ limit: number, windowMs: number, now: number }} Call
 * @typedef {import("ioredis").Redis} Redis
 */

const SORTED_SET = `
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call("ZREMRANGEBYSCORE", KEYS[1], 0, now - window)
if redis.call("ZCARD", KEYS[1]) >= limit then return 0 end
redis.call("ZADD", KEYS[1], now, ARGV[4])
redis.call("PEXPIRE", KEYS[1], window * 2)
return 1`;

const SORTED_SET_ALL = `
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call("ZADD", KEYS[1], now, ARGV[4])
redis.call("ZREMRANGEBYSCORE", KEYS[1], 0, now - window)
redis.call("PEXPIRE", KEYS[1], window * 2)
return redis.call("ZCARD", KEYS[1]) <= limit and 1 or 0`;

const HASH_CELLS = `
local now, window, limit, cell = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local current = math.floor(now / cell)
local oldest = current - math.ceil(window / cell) + 1
local count, all = 0, redis.call("HGETALL", KEYS[1])
for n = 1, #all, 2 do
  if tonumber(all[n]) < oldest then redis.call("HDEL", KEYS[1], all[n]) else count = count + all[n + 1] end
end
if count >= limit then return 0 end
redis.call("HINCRBY", KEYS[1], string.format("%d", current), 1)
redis.call("PEXPIRE", KEYS[1], window * 2)
return 1`;

const TWO_KEYS = `
local now, window, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local share = 1 - (now % window) / window
local count = tonumber(redis.call("GET", KEYS[1]) or "0")
local before = tonumber(redis.call("GET", KEYS[2]) or "0")
if before * share + count >= limit then return 0 end
redis.call("INCR", KEYS[1])
redis.call("PEXPIRE", KEYS[1], window * 2)
return 1`;

/** @param {string} text */
function scripted(text) {
  const sha = createHash("sha1").update(text).digest("hex");
  /** @type {(redis: Redis, keys: string[], args: (string | number)[]) => Promise<boolean>} */
  return async (redis, keys, args) => (await redis.evalsha(sha, keys.length, ...keys, ...args)) === 1;
}

const sortedSet = scripted(SORTED_SET);
const sortedSetAll = scripted(SORTED_SET_ALL);
const hashCells = scripted(HASH_CELLS);
const twoKeys = scripted(TWO_KEYS);

/** Makes the scripts known to a server, before any of them runs. @param {Redis} redis */
export async function loadNoteScripts(redis) {
  for (const text of [SORTED_SET, SORTED_SET_ALL, HASH_CELLS, TWO_KEYS]) await redis.script("LOAD", text);
}

let member = 0;

/** @type {Record<string, { label: string, algorithm: string, run: (redis: Redis, key: string, call: Call) => Promise<boolean> }>} */
export const noteScripts = {
  "notes-sorted-set": {
    label: "notes: sorted set",
    algorithm: "exact log, one member per request",
    run: (redis, key, { limit, windowMs, now }) =>
      sortedSet(redis, [key], [now, windowMs, limit, `${now}-${member++}`]),
  },
  "notes-sorted-set-all": {
    label: "notes: sorted set, add first",
    algorithm: "log of all calls, refused ones too",
    run: (redis, key, { limit, windowMs, now }) =>
      sortedSetAll(redis, [key], [now, windowMs, limit, `${now}-${member++}`]),
  },
  "notes-hash-cells": {
    label: "notes: hash of 10 cells",
    algorithm: "10 cells, the oldest dropped at once",
    run: (redis, key, { limit, windowMs, now }) =>
      hashCells(redis, [key], [now, windowMs, limit, windowMs / 10]),
  },
  "notes-two-keys": {
    label: "notes: two keys",
    algorithm: "two windows, the former by its share",
    run(redis, key, { limit, windowMs, now }) {
      const window = Math.floor(now / windowMs);
      return twoKeys(redis, [`{${key}}${window}`, `{${key}}${window - 1}`], [now, windowMs, limit]);
    },
  },
};
