import { describe, expect, test } from "vitest";
import { LIMITS } from "../testing/limits.js";
import { testServer } from "../testing/testServer.js";

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
