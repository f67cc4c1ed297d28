import { Redis } from "ioredis";
import { afterAll, beforeAll } from "vitest";
import { type RedisServer, startRedis } from "./redisServer.js";

/**
 * A Redis for the tests of one file or `describe`, with a client of it: there once the tests run, gone after them.
 * Arguments are redis-server's own.
 */
export function useRedis(...args: string[]): { readonly redis: Redis; readonly server: RedisServer } {
  const redis = new Redis({ lazyConnect: true });
  redis.on("error", () => {}); // some tests stop the server; what fails thereby fails at its caller
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await startRedis(...args);
    redis.options.port = server.port;
    await redis.connect();
  });
  afterAll(async () => {
    redis.disconnect();
    await server?.stop();
  });
  return {
    redis,
    get server() {
      if (server === undefined)
        throw new Error("The tests' Redis is started before the first of them, not sooner.");
      return server;
    },
  };
}
