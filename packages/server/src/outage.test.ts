import { setTimeout as after } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type RedisServer, startRedis } from "../../sluice/test/redisServer.js";
import { descriptor, envoyClient, type TestServer, testServer } from "./testing/testServer.js";

const LIMITS = `
limiters:
  open: { rules: [{ limit: 2, window: 1h }], outage: { policy: open, deadline: 100ms } }
  closed: { rules: [{ limit: 2, window: 1h }], outage: { policy: closed, deadline: 100ms }, key: "{ip}" }
  local: { rules: [{ limit: 10, window: 1h }], outage: { policy: local, deadline: 100ms, instances: 2 } }
  tiered: { rules: [{ limit: 3, window: 1h }], tiers: true, outage: { deadline: 30s } }
  leased: { rules: [{ limit: 50, window: 1m, algorithm: slidingCells }], tiers: { leases: true }, outage: { deadline: 30s } }
`;

async function redisOf(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(async () => {
    redis.process.kill("SIGCONT");
    await redis.stop();
  });
  return redis;
}

const settings = ({ port }: RedisServer, outage = "open") =>
  `redis: { url: "redis://127.0.0.1:${port}" }\noutage: ${outage}`;
const acquire = async ({ ask }: TestServer, limiter: string, cost = 1) =>
  (await ask(`/v1/limiters/${limiter}/acquire`, { key: "a", cost })).body as {
    allowed: boolean;
    degraded?: string;
    remaining: number;
  };

/** Until the store answers again: a probe goes out several times a second. */
async function recovered(server: TestServer, limiter: string): Promise<void> {
  for (;;) {
    if ((await acquire(server, limiter, 0)).degraded === undefined) return;
    await after(20);
  }
}

test("a Redis that hangs is answered for by each limiter's own policy, and comes back", async () => {
  const redis = await redisOf();
  const server = await testServer([LIMITS, settings(redis)]);
  expect(await acquire(server, "open")).toMatchObject({ allowed: true, remaining: 1 });
  redis.process.kill("SIGSTOP");
  for (let n = 0; n < 4; n++)
    expect(await acquire(server, "open")).toMatchObject({ allowed: true, degraded: "open" });
  expect(await acquire(server, "closed")).toMatchObject({ allowed: false, degraded: "closed" });
  const shares = [];
  for (let n = 0; n < 6; n++) shares.push(await acquire(server, "local"));
  expect(shares.map(({ allowed }) => allowed)).toEqual([true, true, true, true, true, false]);
  expect(shares[0]).toMatchObject({ degraded: "local" });
  const guarded = await server.ask("/v1/guard/closed");
  expect(guarded).toMatchObject({
    status: 503,
    body: { type: expect.stringContaining("temporary-reduced-capacity") },
  });
  expect((await server.ask("/readyz")).body).toMatchObject({ status: "ready", store: { answers: false } });
  const metrics = await (await fetch(`${server.base}/metrics`)).text();
  expect(metrics).toContain('sluice_decisions_total{limiter="open",rule="1h",outcome="degraded"} 4');
  expect(metrics).toMatch(/sluice_outages_total [1-9]/);
  expect(metrics).toContain("sluice_store_up 0");
  redis.process.kill("SIGCONT");
  await recovered(server, "open");
  expect((await server.ask("/readyz")).body).toMatchObject({ store: { answers: true } });
});

test.each([
  ["open", "OK"],
  ["closed", "OVER_LIMIT"],
])(
  "a gRPC caller's deadline is kept while Redis hangs, however patient the settings: %s answers %s",
  async (policy, code) => {
    const redis = await redisOf();
    const envoy =
      "domain: shop\ndescriptors: [{ key: ip, rate_limit: { unit: hour, requests_per_unit: 50 } }]";
    const server = await testServer([envoy, settings(redis, `{ policy: ${policy}, deadline: 30s }`)]);
    const client = envoyClient(server);
    const request = { domain: "shop", descriptors: [descriptor({ ip: "1" })] };
    expect((await client.shouldRateLimit(request)).overallCode).toBe("OK");
    redis.process.kill("SIGSTOP");
    const codes = [];
    // The first calls meet the hang itself, later ones a breaker that is open.
    for (let n = 0; n < 10; n++)
      codes.push((await client.shouldRateLimit(request, undefined, 900)).overallCode);
    expect(new Set(codes)).toEqual(new Set([code]));
  },
);

test("the server starts without Redis, and counts in it once it is there", async () => {
  const redis = await redisOf();
  await redis.kill();
  const server = await testServer([LIMITS, settings(redis)]);
  expect(await acquire(server, "open")).toMatchObject({ allowed: true, degraded: "open" });
  await redis.restart();
  await recovered(server, "open");
  expect(await acquire(server, "open")).toMatchObject({ allowed: true, remaining: 1 });
});

test("a local tier remembers refusals without asking Redis, and leases admit no more than the limit", async () => {
  const redis = await redisOf();
  const servers = [await testServer([LIMITS, settings(redis)]), await testServer([LIMITS, settings(redis)])];
  const [first] = servers as [TestServer, TestServer];
  const trips = async () => {
    const metrics = await (await fetch(`${first.base}/metrics`)).text();
    return Number(/sluice_redis_trips_total\{result="ok"\} (\d+)/.exec(metrics)?.[1]);
  };
  for (let n = 0; n < 4; n++) await acquire(first, "tiered");
  const before = await trips();
  const refused = await Promise.all(Array.from({ length: 50 }, () => acquire(first, "tiered")));
  expect(refused.filter(({ allowed }) => allowed)).toHaveLength(0);
  expect((await trips()) - before).toBeLessThanOrEqual(2);
  const leased = await Promise.all(Array.from({ length: 200 }, (_, n) => acquire(servers[n % 2]!, "leased")));
  expect(leased.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(50);
});
