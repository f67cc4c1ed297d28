import { describe, expect, test } from "vitest";
import { LIMITS } from "../testing/limits.js";
import { testServer } from "../testing/testServer.js";

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
