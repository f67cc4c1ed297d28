export type { NodeRedisRunner, RedisClient, ScriptRunner } from "./client.js";
export { type RedisStoreOptions, redisStore } from "./store.js";
