// Load from this process: keep-alive HTTP by autocannon, unary gRPC calls by grpc-js.
import { credentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import autocannon from "autocannon";
import { PROTO } from "../dist/grpc/server.js";

/** Requests per second of a POST with a body of its own each time; fails when one is not answered with 200. */
export async function httpRate(port, path, bodyOf, seconds, connections = 32) {
  let n = 0;
  const result = await autocannon({
    url: `http://127.0.0.1:${port}${path}`,
    method: "POST",
    headers: { "content-type": "application/json" },
    connections,
    pipelining: 1,
    duration: seconds,
    requests: [{ setupRequest: (request) => ({ ...request, body: bodyOf(n++) }) }],
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${path}: ${result.non2xx} refused, ${result.errors} failed`);
  return result["2xx"] / result.duration;
}

/** Calls per second of ShouldRateLimit with `concurrency` under way. */
export async function grpcRate(port, seconds, concurrency = 128) {
  const { envoy } = loadPackageDefinition(loadSync(PROTO, { longs: Number, enums: String, defaults: true }));
  const client = new envoy.service.ratelimit.v3.RateLimitService(
    `127.0.0.1:${port}`,
    credentials.createInsecure(),
  );
  let calls = 0;
  let n = 0;
  const until = performance.now() + seconds * 1000;
  const started = performance.now();
  const once = () =>
    new Promise((resolve, reject) => {
      const user = String(n++ % 1000);
      const entries = (key) => ({ entries: [{ key, value: user }] });
      client.ShouldRateLimit(
        { domain: "bench", descriptors: [entries("remote_address"), entries("path")] },
        (error, reply) =>
          error || reply.overallCode !== "OK" ? reject(error ?? new Error("over")) : resolve(),
      );
    });
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (performance.now() < until) {
        await once();
        calls++;
      }
    }),
  );
  const rate = calls / ((performance.now() - started) / 1000);
  client.close();
  return rate;
}
