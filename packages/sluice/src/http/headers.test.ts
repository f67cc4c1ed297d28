import { parseList, Token } from "structured-headers";
import { expect, test, vi } from "vitest";
import { createLimiter } from "../limiter.js";
import { slidingCells, slidingLog } from "../rule.js";
import { memoryStore } from "../stores/memory.js";
import { rateLimitHeaders, retryAfterSeconds } from "./headers.js";
import { refusalOf } from "./refusal.js";

let now = 1_800_000_000_000;
function limiterOf() {
  return createLimiter({
    store: memoryStore({ clock: () => now }),
    rules: [
      slidingLog({ name: "burst: 5 @ 250 ms", limit: 5, window: "250ms" }),
      slidingLog({ name: "minute", limit: 10, window: "1m" }),
      slidingCells({ name: "day", limit: 5000, window: "1d" }),
    ],
  });
}

test("draft-11 is a structured list of all rules, as an independent parser reads it", async () => {
  const limiter = limiterOf();
  const headers = new Map(rateLimitHeaders("draft-11", await limiter.tryAcquire("a", 3), limiter.rules));
  expect(headers.get("RateLimit-Policy")).toBe(
    '"burst: 5 @ 250 ms";q=5, "minute";q=10;w=60, "day";q=5000;w=86400',
  );
  const items = [...headers.values()].map((value) => parseList(value));
  for (const list of items) {
    for (const [item] of list) expect([typeof item, item instanceof Token]).toEqual(["string", false]);
  }
  expect(
    items.map((list) => list.map(([name, parameters]) => [name, Object.fromEntries(parameters)])),
  ).toEqual([
    [
      ["burst: 5 @ 250 ms", { q: 5 }],
      ["minute", { q: 10, w: 60 }],
      ["day", { q: 5000, w: 86400 }],
    ],
    [
      ["burst: 5 @ 250 ms", { r: 2, t: 1 }],
      ["minute", { r: 7, t: 60 }],
      ["day", { r: 4997, t: expect.any(Number) }],
    ],
  ]);
});

test("a unit is told with the quota", async () => {
  const limiter = createLimiter({ rules: slidingLog({ name: "bytes", limit: 1e6, window: "1m" }) });
  const [policy] = rateLimitHeaders("draft-11", await limiter.peek("a"), limiter.rules, "content-bytes");
  const [[name, parameters] = []] = parseList(policy?.[1] ?? "");
  expect([name, Object.fromEntries(parameters ?? [])]).toEqual([
    "bytes",
    { q: 1e6, qu: "content-bytes", w: 60 },
  ]);
});

test("Retry-After is rounded up, and no t ends after it", async () => {
  const limiter = limiterOf();
  await limiter.tryAcquire("a", 5);
  now += 300;
  await limiter.tryAcquire("a", 5);
  now += 300;
  const decision = await limiter.tryAcquire("a", 1);
  expect([decision.allowed, decision.retryAfterMs]).toEqual([false, 59_400]);
  expect(retryAfterSeconds(decision)).toBe(60);
  const [, [, value] = ["", ""]] = rateLimitHeaders("draft-11", decision, limiter.rules);
  for (const [, parameters] of parseList(value)) expect(parameters.get("t")).toBeLessThanOrEqual(60);
  const { headers, body } = refusalOf(decision, limiter.rules);
  expect(headers["Retry-After"]).toBe("60");
  expect(JSON.parse(body)).toMatchObject({ detail: "10 requests per 60 s", "violated-policies": ["minute"] });
});

test("whoever waits as long as Retry-After says is admitted", async () => {
  for (const wait of [1, 999, 1000, 1001, 59_999]) {
    const limiter = limiterOf();
    await limiter.tryAcquire("a", 5);
    now += wait;
    for (let n = 0; n < 5; n++) await limiter.tryAcquire("a", 1);
    now += 260;
    const refused = await limiter.tryAcquire("a", 5);
    if (refused.allowed) continue;
    now += (retryAfterSeconds(refused) ?? 0) * 1000;
    expect((await limiter.tryAcquire("a", 5)).allowed).toBe(true);
  }
});

test("a cost that can never fit is told no time to come back", async () => {
  const limiter = limiterOf();
  const decision = await limiter.tryAcquire("a", 100);
  const { status, headers, body } = refusalOf(decision, limiter.rules);
  expect([status, "Retry-After" in headers]).toEqual([429, false]);
  expect(JSON.parse(body).detail).toContain("can never be allowed");
  expect(JSON.stringify(rateLimitHeaders("draft-11", decision, limiter.rules))).not.toMatch(/Infinity|NaN/);
});

test("older generations speak of the binding rule", async () => {
  vi.useFakeTimers({ now });
  const limiter = createLimiter({
    store: memoryStore({ clock: () => now }),
    rules: [
      slidingLog({ name: "minute", limit: 10, window: "1m" }),
      slidingLog({ name: "hour", limit: 100, window: "1h" }),
    ],
  });
  const decision = await limiter.tryAcquire("a", 2);
  expect(rateLimitHeaders("draft-7", decision, limiter.rules)).toEqual([
    ["RateLimit-Policy", "10;w=60, 100;w=3600"],
    ["RateLimit", "limit=10, remaining=8, reset=60"],
  ]);
  expect(rateLimitHeaders("draft-6", decision, limiter.rules)).toEqual([
    ["RateLimit-Policy", "10;w=60, 100;w=3600"],
    ["RateLimit-Limit", "10"],
    ["RateLimit-Remaining", "8"],
    ["RateLimit-Reset", "60"],
  ]);
  expect(rateLimitHeaders("legacy", decision, limiter.rules)).toEqual([
    ["X-RateLimit-Limit", "10"],
    ["X-RateLimit-Remaining", "8"],
    ["X-RateLimit-Reset", String(Math.ceil(now / 1000) + 60)],
  ]);
  expect(rateLimitHeaders(false, decision, limiter.rules)).toEqual([]);
  vi.useRealTimers();
});

test.each(['"', "\\", "\r\n", "é", "a,b", "a;b"])("a rule cannot be named %j", (name) => {
  expect(() => slidingLog({ name, limit: 1, window: "1s" })).toThrow("A rule's name");
});
