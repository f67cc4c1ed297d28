import { readFileSync } from "node:fs";
import { request } from "node:https";
import { fileURLToPath } from "node:url";
import { credentials, makeClientConstructor } from "@grpc/grpc-js";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { freePort, startRedis } from "../../sluice/test/redisServer.js";
import { rateLimitService } from "./grpc/server.js";
import { openRedis } from "./limits/redis.js";
import { descriptor, testServer } from "./testing/testServer.js";

// Certificates of a test authority whose key was thrown away; they protect nothing.
const path = (name: string) => fileURLToPath(new URL(`testing/certificates/${name}`, import.meta.url));
const read = (name: string) => readFileSync(path(name));
const LIMITS = "limiters: { api: { rules: [{ limit: 3, window: 1m }] } }";
const ENVOY = "domain: shop\ndescriptors: [{ key: ip, rate_limit: { unit: hour, requests_per_unit: 50 } }]";
const TLS = `tls: { cert: "${path("server.pem")}", key: "${path("server.key")}"`;

const get = (port: number, options: object) =>
  new Promise<number | undefined>((resolve, reject) => {
    request({ host: "127.0.0.1", port, path: "/healthz", ...options }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });

function decide(port: number, ...certificates: [Buffer, Buffer?, Buffer?]) {
  const Client = makeClientConstructor(rateLimitService(), "RateLimitService");
  const client = new Client(`localhost:${port}`, credentials.createSsl(...certificates)) as never as {
    ShouldRateLimit(request: object, options: object, done: (error: unknown, reply: unknown) => void): void;
    close(): void;
  };
  onTestFinished(() => client.close());
  return new Promise((resolve, reject) => {
    const request = { domain: "shop", descriptors: [descriptor({ ip: "1" })] };
    client.ShouldRateLimit(request, { deadline: Date.now() + 10_000 }, (error, reply) =>
      error ? reject(error) : resolve(reply),
    );
  });
}

test("HTTP and gRPC speak TLS", async () => {
  const { http, grpc } = await testServer([LIMITS, ENVOY, `${TLS} }`]);
  expect(await get(http.port, { ca: read("ca.pem") })).toBe(200);
  await expect(get(http.port, {})).rejects.toThrow();
  await expect(fetch(`http://127.0.0.1:${http.port}/healthz`)).rejects.toThrow();
  expect(await decide(grpc!.port, read("ca.pem"))).toMatchObject({ overallCode: "OK" });
});

test("clients can be asked for a certificate", async () => {
  const { http, grpc } = await testServer([LIMITS, ENVOY, `${TLS}, clientCa: "${path("ca.pem")}" }`]);
  const client = { ca: read("ca.pem"), cert: read("client.pem"), key: read("client.key") };
  expect(await get(http.port, client)).toBe(200);
  await expect(get(http.port, { ca: read("ca.pem") })).rejects.toThrow();
  expect(await decide(grpc!.port, read("ca.pem"), read("client.key"), read("client.pem"))).toMatchObject({
    overallCode: "OK",
  });
  await expect(decide(grpc!.port, read("ca.pem"))).rejects.toThrow();
});

async function startTlsRedis(): Promise<number> {
  const port = await freePort();
  const secured = await startRedis(
    "--tls-port",
    String(port),
    "--tls-cert-file",
    path("server.pem"),
    "--tls-key-file",
    path("server.key"),
    "--tls-ca-cert-file",
    path("ca.pem"),
    "--tls-auth-clients",
    "no",
  );
  onTestFinished(() => secured.stop());
  return port;
}

test("Redis is spoken to over TLS, and only if its certificate is good", async () => {
  const port = await startTlsRedis();
  const trusting = await testServer([
    LIMITS,
    `redis: { url: "rediss://localhost:${port}", tls: { ca: "${path("ca.pem")}" } }`,
  ]);
  expect((await trusting.ask("/readyz")).body).toMatchObject({ store: { kind: "redis", answers: true } });
  expect((await trusting.ask("/v1/limiters/api/acquire", { key: "a" })).body).toMatchObject({ remaining: 2 });
  const wary = await testServer([LIMITS, `redis: { url: "rediss://localhost:${port}" }`]);
  expect((await wary.ask("/readyz")).body).toMatchObject({ store: { answers: false } });
});

test("a handshake with a bad certificate can be broken off", async () => {
  const port = await startTlsRedis();
  for (let n = 0; n < 20; n++) {
    const { close } = openRedis(
      { url: `rediss://localhost:${port}`, cluster: false },
      pino({ level: "silent" }),
    );
    await new Promise((resolve) => setTimeout(resolve, n / 2));
    // As on a busy machine: connected in the meantime, and not told yet.
    for (const end = performance.now() + 10; performance.now() < end; );
    await expect(close()).resolves.toBeUndefined(); // and nothing is thrown later, which would fail the run
  }
});
