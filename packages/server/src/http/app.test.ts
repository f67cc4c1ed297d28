import { request as httpRequest } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openServer, type TestServer, testServer } from "../testing/testServer.js";

const LIMITS = `
limiters:
  api: { rules: [{ limit: 3, window: 1m }], key: "{ip}" }
  login:
    rules:
      - { name: account, limit: 2, window: 1m, by: [account] }
      - { name: address, limit: 5, window: 1h, by: [ip] }
    key: { account: "{header:x-account}", ip: "{ip}" }
  tokens: { rules: [{ limit: 100, window: 1m }] }
  beside:
    rules:
      - { name: enforced, limit: 3, window: 1m }
      - { name: trial, limit: 1, window: 1m, shadow: true }
  trial: { shadow: true, rules: [{ limit: 1, window: 1m }] }
  plain: { rules: [{ limit: 1, window: 1m }] }
`;

describe("acquire", () => {
  test("takes while it fits, and a denial is an answer with the time to come again", async () => {
    const { ask } = await testServer([LIMITS]);
    const first = await ask("/v1/limiters/api/acquire", { key: "a", cost: 2 });
    expect(first).toMatchObject({
      status: 200,
      body: { allowed: true, rule: "1m", limit: 3, remaining: 1, retryAfterMs: 0, rules: [{ rule: "1m" }] },
    });
    expect(first.headers.get("ratelimit-policy")).toBe('"1m";q=3;w=60');
    expect(first.headers.get("ratelimit")).toBe('"1m";r=1;t=60');
    expect(first.headers.get("retry-after")).toBeNull();
    const denied = await ask("/v1/limiters/api/acquire", { key: "a", cost: 2 });
    expect(denied).toMatchObject({ status: 200, body: { allowed: false, remaining: 1 } });
    expect(Number(denied.headers.get("retry-after"))).toBe(60);
    expect((await ask("/v1/limiters/api/acquire", { key: "a", cost: 4 })).body).toMatchObject({
      allowed: false,
      retryAfterMs: null,
    });
    expect((await ask("/v1/limiters/api/acquire", { key: "a" })).body).toMatchObject({
      allowed: true,
      remaining: 0,
    });
  });

  test("counts records by the parts that rules name, all or none", async () => {
    const { ask } = await testServer([LIMITS]);
    const tries = [];
    for (let n = 0; n < 3; n++)
      tries.push(
        (await ask("/v1/limiters/login/acquire", { key: { account: "x", ip: "1" } })).body as {
          allowed: boolean;
        },
      );
    expect(tries.map(({ allowed }) => allowed)).toEqual([true, true, false]);
    const status = await ask(`/v1/limiters/login/keys/${encodeURIComponent('{"account":"y","ip":"1"}')}`);
    expect(status.body).toMatchObject({
      rules: [
        { rule: "account", count: 0 },
        { rule: "address", count: 2 },
      ],
    });
  });

  test("k clients at once admit exactly the limit", async () => {
    const { ask } = await testServer([LIMITS]);
    const answers = await Promise.all(
      Array.from({ length: 60 }, () => ask("/v1/limiters/api/acquire", { key: "k" })),
    );
    expect(answers.filter(({ body }) => (body as { allowed: boolean }).allowed)).toHaveLength(3);
  });
});

test("peek charges nothing", async () => {
  const { ask } = await testServer([LIMITS]);
  for (let n = 0; n < 5; n++) {
    expect((await ask("/v1/limiters/api/peek", { key: "a", cost: 3 })).body).toMatchObject({
      allowed: true,
      remaining: 3,
    });
  }
});

describe("reservations", () => {
  test("are settled once, for less or for more", async () => {
    const { ask } = await testServer([LIMITS]);
    const { body } = await ask("/v1/limiters/tokens/reserve", { key: "a", cost: 60 });
    const { id } = body as { id: string };
    expect(body).toMatchObject({ allowed: true, remaining: 40, expiresAfterMs: 60_000 });
    expect(await ask(`/v1/reservations/${id}/settle`, { cost: 10 })).toMatchObject({
      status: 200,
      body: { settled: 10 },
    });
    expect((await ask("/v1/limiters/tokens/peek", { key: "a" })).body).toMatchObject({ remaining: 90 });
    expect(await ask(`/v1/reservations/${id}/settle`, { cost: 0 })).toMatchObject({ status: 404 });
    const more = (await ask("/v1/limiters/tokens/reserve", { key: "b", cost: 10 })).body as { id: string };
    await ask(`/v1/reservations/${more.id}/settle`, { cost: 120 });
    expect((await ask("/v1/limiters/tokens/peek", { key: "b" })).body).toMatchObject({ allowed: false });
  });

  test("are cancelled without a trace; a denied one has no id", async () => {
    const { ask } = await testServer([LIMITS]);
    const { id } = (await ask("/v1/limiters/tokens/reserve", { key: "a", cost: 100 })).body as { id: string };
    expect((await ask("/v1/limiters/tokens/reserve", { key: "a", cost: 1 })).body).toMatchObject({
      allowed: false,
      id: null,
    });
    expect(await ask(`/v1/reservations/${id}/cancel`, undefined, { method: "POST" })).toMatchObject({
      body: { settled: 0 },
    });
    expect((await ask("/v1/limiters/tokens/peek", { key: "a" })).body).toMatchObject({ remaining: 100 });
  });

  test("are bounded", async () => {
    const { ask } = await testServer([LIMITS, "bounds: { reservations: 2 }"]);
    const reserve = () => ask("/v1/limiters/tokens/reserve", { key: "a", cost: 1 });
    expect([(await reserve()).status, (await reserve()).status, (await reserve()).status]).toEqual([
      200, 200, 503,
    ]);
    expect((await ask("/v1/limiters/tokens/peek", { key: "a" })).body).toMatchObject({ remaining: 98 });
  });
});

describe("keys", () => {
  test("are told of and forgotten, whatever characters they have", async () => {
    const { ask } = await testServer([LIMITS]);
    const path = `/v1/limiters/api/keys/${encodeURIComponent("a/b c?é%{}")}`;
    await ask("/v1/limiters/api/acquire", { key: "a/b c?é%{}", cost: 3 });
    expect((await ask(path)).body).toMatchObject({
      rules: [{ rule: "1m", count: 3, remaining: 0, shadow: false }],
    });
    expect((await ask(path, undefined, { method: "DELETE" })).status).toBe(204);
    expect((await ask(path)).body).toMatchObject({ rules: [{ count: 0, remaining: 3, oldestAt: null }] });
  });

  test("with parts must be JSON", async () => {
    const { ask } = await testServer([LIMITS]);
    expect(await ask("/v1/limiters/login/keys/a")).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("percent-encoded JSON") },
    });
  });
});

describe("batch", () => {
  test("decides each on its own, in order, and one's trouble is not another's", async () => {
    const { ask } = await testServer([LIMITS]);
    const { body } = await ask("/v1/batch", {
      decisions: [
        { limiter: "plain", key: "a" },
        { limiter: "plain", key: "a" },
        { limiter: "nothing", key: "a" },
        { limiter: "login", key: "a" },
        { limiter: "beside", key: "a", cost: 2 },
        { limiter: "plain", key: "b" },
      ],
    });
    expect(body).toMatchObject({
      results: [
        { allowed: true, remaining: 0 },
        { allowed: false },
        { error: { status: 404 } },
        { error: { status: 400 } },
        { allowed: true, rule: "enforced" },
        { allowed: true },
      ],
    });
  });

  test("takes 1,000 decisions and no more", async () => {
    const { ask } = await testServer([LIMITS]);
    const decisions = (count: number) => ({
      decisions: Array.from({ length: count }, (_, n) => ({ limiter: "plain", key: `k${n}` })),
    });
    const thousand = await ask("/v1/batch", decisions(1000));
    expect((thousand.body as { results: unknown[] }).results).toHaveLength(1000);
    expect((await ask("/v1/batch", decisions(1001))).status).toBe(400);
    expect((await ask("/v1/batch", { decisions: [] })).body).toEqual({ results: [] });
  });
});

describe("guard", () => {
  const from = (ip: string, more = {}) => ({ headers: { "x-forwarded-for": ip, ...more } });

  test("answers 200 or 429 with the headers, by the forwarded client", async () => {
    const { ask } = await testServer([LIMITS]);
    for (let n = 0; n < 3; n++) {
      const passed = await ask("/v1/guard/api", undefined, from("203.0.113.9"));
      expect(passed.status).toBe(200);
      expect(passed.headers.get("ratelimit")).toBe(`"1m";r=${2 - n};t=60`);
    }
    const refused = await ask("/v1/guard/api", undefined, from("203.0.113.9"));
    expect(refused).toMatchObject({ status: 429, body: { status: 429, "violated-policies": ["1m"] } });
    expect(refused.headers.get("retry-after")).toBe("60");
    expect(refused.headers.get("content-type")).toContain("application/problem+json");
    expect((await ask("/v1/guard/api", undefined, from("203.0.113.10"))).status).toBe(200);
    expect((await ask("/v1/guard/api?deny=403", undefined, from("203.0.113.9"))).status).toBe(403);
  });

  test("takes the address that the proxy saw, not the one the client wrote", async () => {
    const { ask } = await testServer([LIMITS]);
    for (let n = 0; n < 3; n++) await ask("/v1/guard/api", undefined, from(`10.0.0.${n}, 203.0.113.9`));
    expect((await ask("/v1/guard/api", undefined, from("10.0.0.77, 203.0.113.9"))).status).toBe(429);
  });

  test("reads what Caddy, Traefik and nginx forward", async () => {
    const { ask } = await testServer([
      `limiters: { routes: { rules: [{ limit: 1, window: 1m }], key: "{method} {host} {path}" } }`,
    ]);
    const guard = (headers: Record<string, string>) => ask("/v1/guard/routes", undefined, { headers });
    const traefik = {
      "x-forwarded-method": "POST",
      "x-forwarded-host": "Example.org",
      "x-forwarded-uri": "/a?x=1",
    };
    expect((await guard(traefik)).status).toBe(200);
    expect((await guard({ ...traefik, "x-forwarded-uri": "/a?x=2" })).status).toBe(429);
    expect((await guard({ ...traefik, "x-forwarded-method": "GET" })).status).toBe(200);
    const nginx = { "x-original-method": "POST", "x-forwarded-host": "example.org", "x-original-uri": "/b" };
    expect((await guard(nginx)).status).toBe(200);
    expect((await guard(nginx)).status).toBe(429);
  });

  test("counts records of parts", async () => {
    const { ask } = await testServer([LIMITS]);
    const login = (ip: string) => ask("/v1/guard/login", undefined, from(ip, { "x-account": "alice" }));
    expect([
      (await login("1.1.1.1")).status,
      (await login("2.2.2.2")).status,
      (await login("3.3.3.3")).status,
    ]).toEqual([200, 200, 429]);
  });

  test("says so where the limiter has no key", async () => {
    const { ask } = await testServer([LIMITS]);
    expect(await ask("/v1/guard/plain")).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("no key template") },
    });
  });
});

describe("limits in trial", () => {
  test("stand beside enforced ones on the same key and refuse nothing", async () => {
    const { ask } = await testServer([LIMITS]);
    await ask("/v1/limiters/beside/acquire", { key: "a" });
    expect((await ask("/v1/limiters/beside/acquire", { key: "a" })).body).toMatchObject({
      allowed: true,
      rule: "enforced",
      remaining: 1,
      shadow: [{ rule: "trial", allowed: false }],
    });
    const { body } = await ask("/v1/limiters/beside/keys/a");
    expect(body).toMatchObject({
      rules: [
        { rule: "enforced", count: 2, shadow: false },
        { rule: "trial", count: 1, shadow: true },
      ],
    });
  });

  test("can be whole limiters", async () => {
    const { ask } = await testServer([LIMITS]);
    await ask("/v1/limiters/trial/acquire", { key: "a" });
    expect((await ask("/v1/limiters/trial/acquire", { key: "a" })).body).toMatchObject({
      allowed: true,
      shadow: [{ allowed: false }],
    });
  });
});

describe("Envoy's /json", () => {
  const ENVOY = "domain: x\ndescriptors: [{ key: ip, rate_limit: { unit: minute, requests_per_unit: 2 } }]";
  const request = { domain: "x", descriptors: [{ entries: [{ key: "ip", value: "1" }] }] };

  test("answers 200, then 429, and 500 for what is no request", async () => {
    const { ask } = await testServer([ENVOY]);
    expect(await ask("/json", request)).toMatchObject({
      status: 200,
      body: {
        overallCode: "OK",
        statuses: [
          {
            code: "OK",
            currentLimit: { requestsPerUnit: 2, unit: "MINUTE" },
            limitRemaining: 1,
            durationUntilReset: "60s",
          },
        ],
      },
    });
    const over = await ask("/json", { ...request, hits_addend: 2 });
    expect(over).toMatchObject({ status: 429, body: { overallCode: "OVER_LIMIT" } });
    expect(over.headers.get("retry-after")).toBe("60");
    expect((await ask("/json", { ...request, hitsAddend: "1" })).status).toBe(200);
    expect((await ask("/json", { domain: "x" })).status).toBe(500);
    expect((await ask("/json", { ...request, more: 1 })).status).toBe(500);
  });

  test("takes a body of any type, as Envoy's own does", async () => {
    const { base } = await testServer([ENVOY]);
    const response = await fetch(`${base}/json`, {
      method: "POST",
      body: JSON.stringify(request),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
    expect(response.status).toBe(200);
  });
});

describe("operations", () => {
  test("health, readiness and the list of limits", async () => {
    const { ask } = await testServer([LIMITS]);
    expect((await ask("/healthz")).body).toEqual({ status: "ok" });
    expect(await ask("/readyz")).toMatchObject({
      status: 200,
      body: { status: "ready", store: { kind: "memory", answers: true }, configuration: { valid: true } },
    });
    expect((await ask("/v1/limiters")).body).toMatchObject({
      limiters: [{ name: "api", rules: [{ limit: 3, shadow: false }] }, {}, {}, {}, {}, {}],
    });
    expect((await ask("/openapi.json")).body).toMatchObject({ openapi: "3.1.0", paths: { "/v1/batch": {} } });
  });

  test("metrics count by limiter, rule and outcome, and never carry a key", async () => {
    const { ask, base } = await testServer([LIMITS]);
    for (let n = 0; n < 5; n++) await ask("/v1/limiters/api/acquire", { key: "secret-key" });
    for (let n = 0; n < 2; n++) await ask("/v1/limiters/beside/acquire", { key: "secret-key" });
    await ask("/v1/batch", { decisions: [{ limiter: "plain", key: "secret-key" }] });
    const text = await (await fetch(`${base}/metrics`)).text();
    expect(text).toContain('sluice_decisions_total{limiter="api",rule="1m",outcome="allowed"} 3');
    expect(text).toContain('sluice_decisions_total{limiter="api",rule="1m",outcome="denied"} 2');
    expect(text).toContain('sluice_decisions_total{limiter="beside",rule="trial",outcome="shadow_denied"} 1');
    expect(text).toContain('sluice_near_limit_total{limiter="api",rule="1m"} 1');
    expect(text).toContain("sluice_batch_size_count 1");
    expect(text).toContain('sluice_request_duration_seconds_count{endpoint="acquire"} 7');
    expect(text).not.toContain("secret-key");
  });
});

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
