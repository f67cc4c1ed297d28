import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { testServer } from "../testing/testServer.js";

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

  test("answers whatever it is sent, and goes on", async () => {
    const { base, ask } = await testServer([ENVOY]);
    const body = fc.oneof(
      fc.json({ maxDepth: 4 }),
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify({ ...request, hitsAddend: value })),
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify({ domain: "x", descriptors: [value] })),
      fc.jsonValue({ maxDepth: 3 }).map((value) =>
        JSON.stringify({
          domain: "x",
          descriptors: [{ entries: [value], limit: value, hits_addend: value }],
        }),
      ),
      fc.string({ unit: "binary", maxLength: 40 }),
    );
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const response = await fetch(`${base}/json`, { method: "POST", body: text });
        await response.text();
        expect([200, 400, 429, 500]).toContain(response.status);
        if (response.status === 500) expect(response.headers.get("content-type")).not.toContain("problem");
      }),
      { numRuns: 300 },
    );
    expect((await ask("/healthz")).status).toBe(200);
  });
});
