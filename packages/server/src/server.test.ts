import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type RedisServer, startRedis } from "../../sluice/test/redisServer.js";
import { runSluice, serverProcess } from "./testing/serverProcess.js";
import { askJson, descriptor, envoyClient, testServer } from "./testing/testServer.js";

// No policy stands in for a Redis that is only slow, on a machine that has much to do.
const LIMITS = `
outage: { policy: closed, deadline: 30s }
limiters:
  api: { rules: [{ limit: 100, window: 1h }] }
  calm: { rules: [{ limit: 1000000, window: 1h }] }
  two: { rules: [{ name: day, limit: 10, window: 1d }, { name: trial, limit: 2, window: 1d, shadow: true, algorithm: slidingCells }] }
`;
const ENVOY = "domain: shop\ndescriptors: [{ key: ip, rate_limit: { unit: hour, requests_per_unit: 50 } }]";

function files(...texts: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-server-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  texts.forEach((text, t) => void writeFileSync(join(folder, `${t}.yaml`), text));
  return folder;
}

const acquire = async (base: string, key: string, limiter = "api") =>
  (await askJson(`${base}/v1/limiters/${limiter}/acquire`, { key })).body as {
    allowed: boolean;
    remaining: number;
  };

describe("on one Redis", () => {
  let redis: RedisServer;
  let url: string;
  beforeAll(async () => {
    redis = await startRedis();
    url = `redis://127.0.0.1:${redis.port}`;
  });
  afterAll(() => redis.stop());

  test("two servers admit exactly the limit between them, over HTTP, batches and gRPC", async () => {
    const settings = `redis: { url: "${url}", prefix: "two:" }`;
    const servers = [
      await testServer([LIMITS, ENVOY, settings]),
      await testServer([LIMITS, ENVOY, settings]),
    ];
    const one = await Promise.all(Array.from({ length: 300 }, (_, n) => acquire(servers[n % 2]!.base, "k")));
    expect(one.filter(({ allowed }) => allowed)).toHaveLength(100);
    const decisions = Array.from({ length: 150 }, () => ({ limiter: "api", key: "batch" }));
    const batches = await Promise.all(servers.map(({ ask }) => ask("/v1/batch", { decisions })));
    const results = batches.flatMap(({ body }) => (body as { results: { allowed: boolean }[] }).results);
    expect(results.filter(({ allowed }) => allowed)).toHaveLength(100);
    const clients = servers.map((server) => envoyClient(server));
    const calls = await Promise.all(
      Array.from({ length: 120 }, (_, n) =>
        clients[n % 2]!.shouldRateLimit({ domain: "shop", descriptors: [descriptor({ ip: "1" })] }),
      ),
    );
    expect(calls.filter(({ overallCode }) => overallCode === "OK")).toHaveLength(50);
    const metrics = await (await fetch(`${servers[0]!.base}/metrics`)).text();
    expect(Number(/sluice_redis_trips_total\{result="ok"\} (\d+)/.exec(metrics)?.[1])).toBeGreaterThan(0);
  });

  test("kill -9 and a restart lose no count", async () => {
    const folder = files(LIMITS);
    const first = await serverProcess("-c", folder, "--redis", url);
    for (let n = 0; n < 40; n++) await acquire(first.base, "crash");
    expect(await first.end("SIGKILL")).toBe("SIGKILL");
    const second = await serverProcess("-c", folder, "--redis", url);
    const more = await Promise.all(Array.from({ length: 100 }, () => acquire(second.base, "crash")));
    expect(more.filter(({ allowed }) => allowed)).toHaveLength(60);
    expect(second.log()).not.toContain(url);
  });

  test("SIGTERM under load answers everything that was sent, and counts it", async () => {
    const server = await serverProcess("-c", files(LIMITS), "--redis", url);
    const { answered, admitted, lost } = await loadUntilClosed(server, () => server.end("SIGTERM"));
    expect(lost).toBe(0);
    expect(answered).toBeGreaterThan(100);
    const again = await serverProcess("-c", files(LIMITS), "--redis", url);
    const status = await askJson(`${again.base}/v1/limiters/calm/keys/load`);
    expect(status.body).toMatchObject({ rules: [{ count: admitted }] });
  });

  test("inspect tells what Redis holds, in words", async () => {
    const folder = files(LIMITS, ENVOY);
    const settings = `redis: { url: "${url}" }`;
    const server = await testServer([LIMITS, ENVOY, settings]);
    for (let n = 0; n < 3; n++) await acquire(server.base, "alice", "two");
    await envoyClient(server).shouldRateLimit({ domain: "shop", descriptors: [descriptor({ ip: "9" })] });
    const two = await runSluice(["inspect", "alice", "-c", folder, "-r", url, "--limiter", "two"]);
    expect(two).toMatchObject({ code: 0, err: "" });
    expect(two.out).toMatch(
      /limiter two\n {2}day: 3 of 10 per 1 d \(slidingLog\) counted, 7 left, the oldest from 20/,
    );
    expect(two.out).toMatch(/ {2}trial: 2 of 2 per 1 d \(slidingCells\) counted, 0 left.*\(in trial\)/);
    expect(two.out).toMatch(/in Redis: sluice:\{alice\}\/two\/day\/log: a \w+ of \d+ bytes, gone in/);
    const ip = await runSluice(["inspect", "ip=9", "-c", folder, "-r", url, "--limiter", "shop"]);
    expect(ip.out).toMatch(/domain shop\n {2}hour: 1 of 50 per 1 h/);
    const nobody = await runSluice(["inspect", "bob", "-c", folder, "-r", url, "-l", "api"]);
    expect(nobody.out).toContain("nothing counted; 100 per 1 h");
    expect(nobody.out).toContain("not there");
    expect((await runSluice(["inspect", "bob", "-c", folder])).err).toContain(
      "--redis redis://localhost:6379",
    );
  });
});

test("SIGTERM while memory counts ends with 0 and answers what is under way", async () => {
  const server = await serverProcess("-c", files(LIMITS));
  const { lost, answered } = await loadUntilClosed(server, () => server.end("SIGTERM"));
  expect([lost, answered > 100]).toEqual([0, true]);
});

/**
 * Keep-alive clients that ask without a pause until the server says goodbye or refuses connections. `lost`
 * counts requests that were sent on a connection and never answered.
 */
async function loadUntilClosed({ base }: { base: string }, end: () => Promise<unknown>) {
  const agent = new Agent({ keepAlive: true, maxSockets: 20 });
  let answered = 0;
  let admitted = 0;
  let lost = 0;
  let underWay = () => {};
  const started = new Promise<void>((resolve) => {
    underWay = resolve;
  });
  const once = () =>
    new Promise<boolean>((resolve) => {
      const sent = request(
        `${base}/v1/limiters/calm/acquire`,
        { method: "POST", agent, headers: { "content-type": "application/json" } },
        (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (part: string) => {
            text += part;
          });
          response.on("end", () => {
            answered++;
            if ((JSON.parse(text) as { allowed: boolean }).allowed) admitted++;
            if (answered === 200) underWay();
            resolve(response.headers.connection !== "close");
          });
        },
      );
      sent.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "ECONNREFUSED") lost++;
        resolve(false);
      });
      sent.end('{"key":"load"}');
    });
  const clients = Array.from({ length: 20 }, async () => {
    while (await once());
  });
  await started;
  expect(await end()).toBe(0);
  await Promise.all(clients);
  agent.destroy();
  return { answered, admitted, lost };
}
