import { describe, expect, test } from "vitest";
import { LIMITS } from "../testing/limits.js";
import { testServer } from "../testing/testServer.js";

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

  test("hold slots of a concurrent rule, and what has a lease, until they are settled", async () => {
    const { ask } = await testServer([
      `limiters:
  jobs:
    rules:
      - { name: parallel, algorithm: concurrent, limit: 2, lease: 2m }
      - { name: day, limit: 3, window: 1d, lease: 2m }`,
    ]);
    const reserve = async () => (await ask("/v1/limiters/jobs/reserve", { key: "a", cost: 1 })).body;
    const [first] = [(await reserve()) as { id: string }, await reserve()];
    expect(await reserve()).toMatchObject({ allowed: false, rule: "parallel", id: null });
    await ask(`/v1/reservations/${first.id}/settle`, { cost: 1 });
    expect(await reserve()).toMatchObject({ allowed: true });
    expect(await reserve()).toMatchObject({ allowed: false });
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
