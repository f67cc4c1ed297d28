// Eight processes hammer one key on real time. What they were told, merged by Redis' stamps, must show
// no window over the limit, and no denial while there was room.
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectNeverOver, expectNeverUnder } from "../../../test/admissions.js";
import { type Hammers, startHammers } from "../../../test/hammers.js";
import { startRedis } from "../../../test/redisServer.js";
import { useRedis } from "../../../test/useRedis.js";
import { createLimiter } from "../../limiter.js";
import { fixedWindow, slidingLog, tokenBucket } from "../../rule.js";
import { redisStore } from "./index.js";

const HOUR = 3_600_000;
const CLOCK_ERRORS = [0, HOUR, -HOUR, 0, 0, -HOUR, HOUR, 0];
const load = { limit: 100, window: 250, forMs: 1500 };

let hammers: Hammers;
beforeAll(async () => {
  hammers = await startHammers(CLOCK_ERRORS);
}, 60_000);
afterAll(() => hammers.stop());

describe("eight processes, half of them with clocks an hour off either way", () => {
  const own = useRedis();

  test("admit exactly the limit in every window", async () => {
    const started = Date.now();
    const told = await hammers.run({ port: own.server.port, key: "undisturbed", ...load });
    expect(told.failures).toEqual([]);
    expectNeverOver(told.admitted, load.limit, load.window);
    expectNeverUnder(told, load.limit, load.window);
    expect(told.admitted.length).toBeGreaterThanOrEqual(4 * load.limit);
    for (const at of told.admitted) expect(Math.abs(at - started)).toBeLessThan(60_000);
  });

  test("and while scripts are flushed every few milliseconds", async () => {
    let flushes = 0;
    let ended = false;
    const flushing = (async () => {
      while (!ended) {
        await own.redis.script("FLUSH");
        flushes++;
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    })();
    const told = await hammers.run({ port: own.server.port, key: "flushed", ...load });
    ended = true;
    await flushing;
    expect(flushes).toBeGreaterThan(20);
    expect(await own.redis.info("errorstats")).toMatch(/errorstat_NOSCRIPT:count=[1-9]/);
    expect(told.failures).toEqual([]);
    expectNeverOver(told.admitted, load.limit, load.window);
    expectNeverUnder(told, load.limit, load.window);
  });
});

describe.each([
  ["without persistence forgets, and", []],
  ["with an append-only file remembers every answer, and", ["--appendonly", "yes"]],
])("a Redis %s", (_, args) => {
  test("that is killed and restarted under eight processes leaves no call hanging", async () => {
    const server = await startRedis(...args);
    try {
      const long = { port: server.port, key: "killed", limit: 100, window: 2000, forMs: 3000 };
      const running = hammers.run(long);
      await new Promise((resolve) => setTimeout(resolve, 1000));
      await server.kill();
      const killedAt = Date.now();
      await new Promise((resolve) => setTimeout(resolve, 100));
      await server.restart();
      const told = await running;

      const after = told.admitted.filter((at) => at > killedAt);
      const before = told.admitted.filter((at) => at <= killedAt);
      expect(told.slowestMs).toBeLessThan(10_000);
      for (const failure of told.failures) expect(failure).toMatch(/^STORE_FAILED: Redis did not decide: /);
      expect(before.length).toBeGreaterThan(0);
      expect(after.length).toBeGreaterThan(0);
      if (args.length > 0) {
        expectNeverOver(told.admitted, long.limit, long.window);
      } else {
        expectNeverOver(before, long.limit, long.window);
        expectNeverOver(after, long.limit, long.window);
        expect(Math.min(...after) - killedAt).toBeLessThan(long.window - 500);
      }
    } finally {
      await server.stop();
    }
  });
});

test("a replica that was promoted goes on with what had reached it", async () => {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", "127.0.0.1", String(master.port));
  const clients = [master, replica].map(({ port }) => new Redis(port));
  try {
    const rules = [
      slidingLog({ name: "log", limit: 100, window: "1h" }),
      slidingLog({ name: "named", limit: 100, window: "1h", layout: "zset" }),
      fixedWindow({ name: "day", limit: 100, window: "1d" }),
      tokenBucket({ name: "bucket", limit: 100, window: "1d" }),
    ];
    const [old, promoted] = clients.map((client) =>
      createLimiter({ name: "failover", store: redisStore(client), rules }),
    );
    while (!(await clients[1].info("replication")).includes("master_link_status:up")) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await Promise.all(Array.from({ length: 60 }, (_, n) => old.tryAcquire("a", 1, { id: `request ${n}` })));
    expect(await clients[0].wait(1, 5000)).toBe(1);
    await clients[1].call("REPLICAOF", "NO", "ONE");
    await master.kill();

    expect((await promoted.status("a")).map(({ count }) => count)).toEqual([60, 60, 60, 60]);
    expect(await promoted.entries("a")).toHaveLength(60);
    const more = await Promise.all(Array.from({ length: 60 }, () => promoted.tryAcquire("a")));
    expect(more.filter(({ allowed }) => allowed)).toHaveLength(40);
    expect(await clients[1].dbsize()).toBe(4);
  } finally {
    for (const client of clients) client.disconnect();
    await replica.stop();
    await master.stop();
  }
});
