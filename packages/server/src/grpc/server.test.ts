import { credentials, Metadata, makeClientConstructor, type ServiceDefinition, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { service as healthService } from "grpc-health-check";
import { expect, onTestFinished, test } from "vitest";
import { writeAddress } from "../address.js";
import { descriptor, envoyClient, testServer } from "../testing/testServer.js";

const ENVOY = `
domain: shop
descriptors:
  - { key: ip, rate_limit: { unit: minute, requests_per_unit: 3, name: by ip } }
`;
const request = { domain: "shop", descriptors: [descriptor({ ip: "1" })] };

test("a gRPC client gets Envoy's answers", async () => {
  const client = envoyClient(await testServer([ENVOY]));
  const first = await client.shouldRateLimit(request);
  expect(first).toMatchObject({
    overallCode: "OK",
    statuses: [
      { code: "OK", currentLimit: { name: "by ip", requestsPerUnit: 3, unit: "MINUTE" }, limitRemaining: 2 },
    ],
  });
  expect(await client.shouldRateLimit({ ...request, hitsAddend: 3 })).toMatchObject({
    overallCode: "OVER_LIMIT",
    statuses: [{ code: "OVER_LIMIT", limitRemaining: 2 }],
    responseHeadersToAdd: [{ key: "retry-after", value: "60" }],
  });
  const looked = { ...descriptor({ ip: "1" }), hitsAddend: { value: 0 } };
  expect(
    (await client.shouldRateLimit({ domain: "shop", descriptors: [looked] })).statuses[0]?.limitRemaining,
  ).toBe(2);
  const own = { ...descriptor({ ip: "1" }), limit: { requestsPerUnit: 9, unit: "DAY" } };
  expect(
    (await client.shouldRateLimit({ domain: "shop", descriptors: [own] })).statuses[0]?.currentLimit,
  ).toMatchObject({
    requestsPerUnit: 9,
    unit: "DAY",
  });
});

test("many at once admit exactly the limit", async () => {
  const client = envoyClient(await testServer([ENVOY]));
  const replies = await Promise.all(Array.from({ length: 50 }, () => client.shouldRateLimit(request)));
  expect(replies.filter(({ overallCode }) => overallCode === "OK")).toHaveLength(3);
});

test.each([
  ["an empty domain", { ...request, domain: "" }],
  ["no descriptors", { ...request, descriptors: [] }],
  [
    "an override of an unknown unit",
    {
      domain: "shop",
      descriptors: [{ ...descriptor({ a: "1" }), limit: { requestsPerUnit: 1, unit: "UNKNOWN" } }],
    },
  ],
])("%s is an invalid argument", async (_what, bad) => {
  const client = envoyClient(await testServer([ENVOY]));
  await expect(client.shouldRateLimit(bad)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
});

test("bytes that are no message are an error of the call, and the server goes on", async () => {
  const server = await testServer([ENVOY]);
  const client = envoyClient(server);
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    // Near misses: a valid message with some bytes changed.
    fc.tuple(fc.nat(40), fc.nat(255)).map(([at, value]) => {
      const valid = Buffer.from("0a0473686f7012100a0e0a02697012083132372e302e302e31", "hex");
      valid[at % valid.length] = value;
      return new Uint8Array(valid);
    }),
  );
  await fc.assert(
    fc.asyncProperty(bytes, async (random) => {
      const outcome = await client.sendBytes(Buffer.from(random)).then(
        () => status.OK,
        (error: { code: number }) => error.code,
      );
      expect([status.OK, status.INVALID_ARGUMENT, status.INTERNAL]).toContain(outcome);
    }),
    { numRuns: 300 },
  );
  expect(
    (await client.shouldRateLimit({ ...request, descriptors: [descriptor({ ip: "after" })] })).overallCode,
  ).toBe("OK");
  await expect(client.sendBytes(Buffer.alloc(300_000))).rejects.toMatchObject({
    code: status.RESOURCE_EXHAUSTED,
  });
});

test("the standard health service answers", async () => {
  const server = await testServer([ENVOY]);
  const Client = makeClientConstructor(healthService as unknown as ServiceDefinition, "Health");
  const client = new Client(writeAddress(server.grpc!), credentials.createInsecure()) as never as {
    check(request: object, done: (error: unknown, reply: unknown) => void): void;
    close(): void;
  };
  onTestFinished(() => client.close());
  const check = (service: string) =>
    new Promise((resolve, reject) =>
      client.check({ service }, (error, reply) => (error ? reject(error) : resolve(reply))),
    );
  expect(await check("")).toMatchObject({ status: "SERVING" });
  expect(await check("envoy.service.ratelimit.v3.RateLimitService")).toMatchObject({ status: "SERVING" });
  await expect(check("other")).rejects.toMatchObject({ code: status.NOT_FOUND });
});

test("where tokens are set, a call without one that may decide is refused", async () => {
  process.env.TEST_DECIDE = "a-token-that-decides";
  process.env.TEST_READ = "a-token-that-looks--";
  const tokens = "tokens: [{ name: a, env: TEST_DECIDE }, { name: b, scope: read, env: TEST_READ }]";
  const client = envoyClient(await testServer([ENVOY, tokens]));
  const bearer = (token: string) => {
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${token}`);
    return metadata;
  };
  await expect(client.shouldRateLimit(request)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  await expect(client.shouldRateLimit(request, bearer("a-token-that-decidez"))).rejects.toMatchObject({
    code: status.UNAUTHENTICATED,
  });
  await expect(client.shouldRateLimit(request, bearer("a-token-that-looks--"))).rejects.toMatchObject({
    code: status.PERMISSION_DENIED,
  });
  expect((await client.shouldRateLimit(request, bearer("a-token-that-decides"))).overallCode).toBe("OK");
});
