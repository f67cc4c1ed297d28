import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type OpenClient, singleClients } from "../../../test/redisClients.js";
import { type RedisServer, startRedis } from "../../../test/redisServer.js";
import { type ConformanceOptions, conformance } from "../../testing/index.js";
import { redisStore } from "./index.js";

let server: RedisServer;
const open: Record<string, OpenClient> = {};
beforeAll(async () => {
  server = await startRedis();
  for (const [name, connect] of Object.entries(singleClients)) open[name] = await connect(server.port);
});
afterAll(async () => {
  for (const { close } of Object.values(open)) await close();
  await server.stop();
});

/** Each test has a store of its own, so they can be on their way to Redis at one time. */
function conforms(client: string, options: Pick<ConformanceOptions, "name" | "decisions" | "adapt">): void {
  conformance({
    ...options,
    describe,
    it: it.concurrent,
    createStore: ({ clock }) => redisStore(open[client].client, { prefix: `${randomUUID()}:`, clock }),
  });
}

for (const client of Object.keys(singleClients)) {
  conforms(client, { name: `redisStore on ${client}`, decisions: client === "ioredis 6" ? 5000 : 250 });
}

conforms("node-redis 6", {
  name: "redisStore with every log a sorted set",
  decisions: 1000,
  adapt: (rule) =>
    rule.algorithm === "slidingLog" && rule.lease === undefined ? { ...rule, layout: "zset" } : rule,
});
