import { request as httpRequest } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LIMITS } from "../testing/limits.js";
import { openServer, type TestServer } from "../testing/testServer.js";

describe("what is wrong with a request", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await openServer([LIMITS]);
  });
  afterAll(() => server.close());

  test.each([
    ["no body", undefined, 400],
    ["no JSON", '{"key":', 400],
    ["no key", "{}", 400],
    ["an empty key", '{"key":""}', 400],
    ["a key that is a number", '{"key":5}', 400],
    ["a key that is too long", JSON.stringify({ key: "x".repeat(1025) }), 400],
    ["a cost that is text", '{"key":"a","cost":"1"}', 400],
    ["a cost that is not whole", '{"key":"a","cost":1.5}', 400],
    ["a negative cost", '{"key":"a","cost":-1}', 400],
    ["a cost beyond what counts exactly", '{"key":"a","cost":1e300}', 400],
    ["a field that is not known", '{"key":"a","price":1}', 400],
    ["a prototype", '{"key":"a","__proto__":{}}', 400],
    ["a body that is too large", JSON.stringify({ key: "x".repeat(2_000_000) }), 413],
  ])("%s is told as a problem", async (_what, body, status) => {
    const response = await fetch(`${server.base}/v1/limiters/api/acquire`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...(body !== undefined && { body }),
    });
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toContain("application/problem+json");
    expect(await response.json()).toMatchObject({ status, detail: expect.stringMatching(/\w/) });
  });

  test.each([
    [{ key: 5 }, "key must be text that is neither empty nor too long, or an object of such parts."],
    [
      { key: { user: "" } },
      "key must be text that is neither empty nor too long, or an object of such parts.",
    ],
    [{ key: "a", price: 1 }, 'The body has no field "price".'],
    [{ key: "a", cost: -1 }, "cost must be >= 0."],
    [{}, "The body must have required property 'key'."],
  ])("%j: %s", async (body, detail) => {
    expect((await server.ask("/v1/limiters/api/acquire", body)).body).toMatchObject({ detail });
  });

  test("the wrong type, the wrong place and the wrong limiter", async () => {
    const { base, ask } = server;
    const text = await fetch(`${base}/v1/limiters/api/acquire`, {
      method: "POST",
      body: '{"key":"a"}',
      headers: { "content-type": "text/plain" },
    });
    expect(text.status).toBe(415);
    expect((await ask("/v1/nothing")).status).toBe(404);
    expect(await ask("/v1/limiters/nothing/acquire", { key: "a" })).toMatchObject({
      status: 404,
      body: { detail: expect.stringContaining("api, login") },
    });
  });

  test("whatever comes in is answered below 500, and the server goes on", async () => {
    const { base, http, ask } = server;
    const paths = [
      "/v1/limiters/api/acquire",
      "/v1/limiters/login/reserve",
      "/v1/batch",
      "/v1/limiters/tokens/peek",
      "/v1/reservations/x/settle",
    ];
    const value = fc.oneof(
      fc.json({ maxDepth: 3 }),
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.jsonValue({ maxDepth: 2 }).map((key) => JSON.stringify({ key, cost: key })),
      fc
        .jsonValue({ maxDepth: 2 })
        .map((key) => JSON.stringify({ decisions: [{ limiter: "api", key }, key] })),
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths), value, async (path, body) => {
        const response = await fetch(base + path, {
          method: "POST",
          body,
          headers: { "content-type": "application/json" },
        });
        await response.text();
        expect(response.status).toBeLessThan(500);
      }),
      { numRuns: 400 },
    );
    // What no client library would send.
    const status = await new Promise<number | undefined>((resolve, reject) => {
      httpRequest({ ...http, path: "/v1/limiters/%E0%A4%A/acquire", method: "POST" }, (response) =>
        resolve(response.statusCode),
      )
        .on("error", reject)
        .end();
    });
    expect(status).toBe(400);
    expect((await ask("/healthz")).status).toBe(200);
  });
});
