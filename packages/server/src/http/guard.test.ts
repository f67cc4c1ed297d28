import { describe, expect, test } from "vitest";
import { LIMITS } from "../testing/limits.js";
import { testServer } from "../testing/testServer.js";

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
