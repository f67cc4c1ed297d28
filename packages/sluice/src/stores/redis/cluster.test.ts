import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { expectNeverOver, expectNeverUnder } from "../../../test/admissions.js";
import { clusterClients, type OpenClient } from "../../../test/redisClients.js";
import { type RedisCluster, startCluster } from "../../../test/redisCluster.js";
import { createLimiter } from "../../limiter.js";
import { fixedWindow, slidingCells, slidingLog } from "../../rule.js";
import { conformance } from "../../testing/index.js";
import { redisStore } from "./index.js";

let cluster: RedisCluster;
const open: Record<string, OpenClient> = {};
beforeAll(async () => {
  cluster = await startCluster();
  for (const [name, connect] of Object.entries(clusterClients)) open[name] = await connect(cluster.ports);
});
afterAll(async () => {
  for (const { close } of Object.values(open)) await close();
  await cluster.stop();
});

for (const client of Object.keys(clusterClients)) {
  conformance({
    name: `redisStore on a cluster by ${client}`,
    describe,
    it: it.concurrent,
    decisions: 150,
    createStore: ({ clock }) => redisStore(open[client].client, { prefix: `${randomUUID()}:`, clock }),
  });
}

describe.each(Object.keys(clusterClients))("on a cluster by %s", (client) => {
  test("a thousand keys of one tick are spread over all masters, and none is CROSSSLOT", async () => {
    const store = redisStore(open[client].client, { prefix: `${client}:` });
    const limiter = createLimiter({
      store,
      rules: [slidingLog({ limit: 2, window: "1m" }), fixedWindow({ name: "hour", limit: 5, window: "1h" })],
    });
    const keys = Array.from({ length: 1000 }, (_, n) => `user {${n}} of ${client}`);
    const decisions = await Promise.all(keys.map((key) => limiter.tryAcquire(key)));
    expect(decisions.every(({ allowed }) => allowed)).toBe(true);
    for (const master of cluster.masters) {
      const held = await master.keys(`${client}:*`);
      expect(held.length).toBeGreaterThan(400);
      expect(held.length).toBeLessThan(1000);
    }
  });

  test("record keys are decided together by rules that count by different parts", async () => {
    const store = redisStore(open[client].client, { prefix: `${client} records:` });
    const rules = [
      slidingLog({ name: "user", by: ["user"], limit: 3, window: "1m" }),
      slidingCells({ name: "org", by: ["org"], limit: 4, window: "1h" }),
    ];
    const together = createLimiter({ name: "together", store, rules });
    const spread = createLimiter({ name: "spread", store, rules, partition: "org" });
    for (const limiter of [together, spread]) {
      const admitted = [];
      for (const user of ["1", "1", "1", "1", "2", "2"]) {
        admitted.push((await limiter.tryAcquire({ org: "acme", user })).allowed);
      }
      expect(admitted).toEqual([true, true, true, false, true, false]);
    }
  });

  test("a record key without the part it is spread by is refused", async () => {
    const limiter = createLimiter({
      store: redisStore(open[client].client),
      partition: "org",
      rules: slidingLog({ limit: 1, window: "1m" }),
    });
    await expect(limiter.tryAcquire({ user: "1" })).rejects.toMatchObject({ code: "INVALID_KEY" });
  });
});

test("record keys live in one slot by default, and one per partition where told", async () => {
  const rule = slidingLog({ limit: 3, window: "1m" });
  const store = redisStore(open["ioredis 6"].client, { prefix: "slots:" });
  const limiters = [
    createLimiter({ name: "one", store, rules: rule }),
    createLimiter({ name: "many", store, rules: rule, partition: "org" }),
  ];
  for (let n = 0; n < 50; n++) {
    for (const limiter of limiters) await limiter.tryAcquire({ org: `org ${n % 10}`, user: String(n) });
  }
  const keys = (await Promise.all(cluster.masters.map((master) => master.keys("slots:*")))).flat();
  const slots = async (limiter: string) => {
    const own = keys.filter((key) => key.includes(`/${limiter}/`));
    expect(own).toHaveLength(50);
    const all = own.map((key) => cluster.masters[0].call("CLUSTER", "KEYSLOT", key));
    return new Set(await Promise.all(all)).size;
  };
  expect(await slots("one")).toBe(1);
  expect(await slots("many")).toBe(10);
});

// Several keys per decision, moved one by one: MOVED, ASK and TRYAGAIN all happen.
test.each(Object.keys(clusterClients))(
  "a slot moved mid-load loses no decision and admits none too many: %s",
  async (client) => {
    const [limit, window] = [50, 200];
    const key = `moved under ${client}`;
    const limiter = createLimiter({
      name: "moving",
      store: redisStore(open[client].client),
      rules: [
        slidingLog({ name: "exact", limit, window }),
        slidingLog({ name: "named", limit: 1_000_000, window: "1h", layout: "zset" }),
        fixedWindow({ name: "hour", limit: 1_000_000, window: "1h" }),
        slidingCells({ name: "day", limit: 1_000_000, window: "1d" }),
      ],
    });
    const told = { admitted: [] as number[], denied: [] as number[] };
    let ended = false;
    const callers = Array.from({ length: 20 }, async () => {
      while (!ended) {
        const { allowed, rules } = await limiter.tryAcquire(key);
        (allowed ? told.admitted : told.denied).push(rules[0].at);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    });
    await new Promise((resolve) => setTimeout(resolve, window));
    const slot = Number(await cluster.masters[0].call("CLUSTER", "KEYSLOT", `sluice:{${key}}`));
    const home = Math.floor((slot * 3) / 16_384);
    const errors = await errorsOf(cluster);
    for (let hop = 0; hop < 3; hop++)
      await cluster.moveSlot(slot, (home + hop) % 3, (home + hop + 1) % 3, 20);
    ended = true;
    await Promise.all(callers);

    expectNeverOver(told.admitted, limit, window);
    expectNeverUnder(told, limit, window);
    const during = await errorsOf(cluster);
    for (const code of ["TRYAGAIN", "MOVED"]) expect(during[code], code).toBeGreaterThan(errors[code] ?? 0);
    const [, named, hour, day] = await limiter.status(key);
    const { length } = told.admitted;
    expect([named.count, hour.count, day.count]).toEqual([length, length, length]);
  },
);

/** How often the masters have answered with each error. */
async function errorsOf({ masters }: RedisCluster): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const master of masters) {
    for (const [, code, count] of (await master.info("errorstats")).matchAll(
      /errorstat_(\w+):count=(\d+)/g,
    )) {
      sums[code] = (sums[code] ?? 0) + Number(count);
    }
  }
  return sums;
}
