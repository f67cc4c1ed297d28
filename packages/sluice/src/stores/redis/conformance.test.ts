import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type RedisServer, startRedis } from "../../../test/redisServer.js";
import { conformance } from "../../testing/index.js";
import { redisStore } from "./index.js";

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

conformance({
  name: "redisStore",
  describe,
  it,
  decisions: 5000,
  createStore: ({ clock }) => redisStore(client, { prefix: `${randomUUID()}:`, clock }),
});
