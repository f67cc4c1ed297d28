import { beforeEach, expect, test } from "vitest";
import { singleClients } from "../../../test/redisClients.js";
import { commandStats, resetStats } from "../../../test/redisStats.js";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter } from "../../limiter.js";
import { slidingLog } from "../../rule.js";
import { redisStore } from "./index.js";
import { script, sha } from "./script.js";

const rule = slidingLog({ limit: 1000, window: "1h" });
const own = useRedis();
const { redis } = own;
beforeEach(async () => {
  await redis.flushall();
  await redis.script("FLUSH");
});

test("the digest is the server's own", async () => {
  expect(await redis.script("LOAD", script)).toBe(sha);
});

test.each(Object.entries(singleClients))(
  "%s: the script is sent whole once, and again after a flush",
  async (_, connect) => {
    const { client, close } = await connect(own.server.port);
    const limiter = createLimiter({ store: redisStore(client), rules: rule });
    await resetStats(redis);
    for (let n = 0; n < 5; n++) expect((await limiter.tryAcquire("a")).remaining).toBe(999 - n);
    await redis.script("FLUSH");
    for (let n = 5; n < 10; n++) expect((await limiter.tryAcquire("a")).remaining).toBe(999 - n);
    const { eval: whole, evalsha } = await commandStats(redis);
    expect([whole.calls, evalsha.calls]).toEqual([2, 10]);
    await close();
  },
);

test.each(Object.entries(singleClients))(
  "%s: the next call after a restart simply works",
  async (_, connect) => {
    const { client, close } = await connect(own.server.port);
    if ("on" in client && typeof client.on === "function") client.on("error", () => {});
    const limiter = createLimiter({ store: redisStore(client), rules: rule });
    expect((await limiter.tryAcquire("a")).remaining).toBe(999);
    await own.server.restart();
    while (redis.status !== "ready" || (await redis.ping()) !== "PONG")
      await new Promise((resolve) => setTimeout(resolve, 10));
    const { remaining } = await limiter.tryAcquire("a").catch(() => limiter.tryAcquire("a"));
    expect(remaining).toBeGreaterThanOrEqual(998); // forgotten; a call whose reply was lost may have been charged
    await close();
  },
);

test("whatever is no client is refused at once", () => {
  for (const client of [
    undefined,
    null,
    7,
    "redis://localhost",
    {},
    { evalsha: () => {} },
    { eval: 1, evalsha: 2 },
  ]) {
    expect(() => redisStore(client as never)).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringContaining("ioredis or node-redis"),
      }),
    );
  }
  for (const options of [{ prefix: "{a}" }, { prefix: 7 }, { clock: 7 }]) {
    expect(() => redisStore(redis, options as never)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  }
});
