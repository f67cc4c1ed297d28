// Real servers on loopback and a real client, for each adapter: what the options do.
import { afterEach, describe, expect, test, vi } from "vitest";
import { get, used } from "../../test/httpClient.js";
import { adapters, type Guards, type Handler, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { Answer, GuardOptions } from "./options.js";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((resource) => resource.close()));
});

describe.each(Object.entries(adapters))("%s", (adapter, startServer) => {
  async function start(guards: Guards, handler: Handler = () => ({ body: "ok" })): Promise<Running> {
    const running = await startServer(guards, handler);
    opened.push(running);
    return running;
  }

  const hour = (limit: number, name = "hour") =>
    createLimiter({ rules: slidingLog({ name, limit, window: "1h" }) });

  test("a rule alone makes a guard", async () => {
    const { url } = await start([{ limit: 2, window: "1m" }]);
    expect(await statuses(url, 3)).toEqual([200, 200, 429]);
  });

  test("several guards stand on one route, and their headers in one list", async () => {
    const { url } = await start(
      [{ limiter: hour(5, "outer") }, { limiter: hour(1, "inner") }],
      (_, decision) => ({ body: JSON.stringify(decision?.rules.map(({ rule }) => rule)) }),
    );
    const [passed, refused] = [await get(url), await get(url)];
    expect(JSON.parse(passed.body)).toEqual(["outer", "inner"]);
    expect(passed.headers.get("RateLimit")).toMatch(/^"outer";r=4;t=\d+, "inner";r=0;t=\d+$/);
    for (const { headers } of [passed, refused]) {
      expect(headers.get("RateLimit-Policy")).toBe('"outer";q=5;w=3600, "inner";q=1;w=3600');
    }
    expect(refused.status).toBe(429);
    expect(refused.headers.get("RateLimit")).toMatch(/^"inner";r=0;t=\d+$/);
    expect(JSON.parse(refused.body)["violated-policies"]).toEqual(["inner"]);
  });

  test("of several guards the headers of old have room for the tightest alone", async () => {
    const guards: Guards = [
      { limiter: hour(5), headers: "draft-6" },
      { limiter: hour(50), headers: "draft-6" },
    ];
    const { headers } = await get((await start(guards)).url);
    expect([headers.get("RateLimit-Limit"), headers.get("RateLimit-Remaining")]).toEqual(["5", "4"]);
    expect(headers.get("RateLimit-Policy")).toBe("5;w=3600, 50;w=3600");
  });

  test("the decision is on the request", async () => {
    const { url } = await start([{ limiter: hour(10) }], (_, decision) => ({
      body: JSON.stringify(decision),
    }));
    const { body } = await get(url);
    expect(JSON.parse(body)).toMatchObject({ allowed: true, rule: "hour", limit: 10, remaining: 9 });
  });

  test("requests are skipped, costed, keyed and given a limiter one by one, also by promises", async () => {
    const free = hour(3, "free");
    const paid = hour(100, "paid");
    let calls = 0;
    const guard: GuardOptions<unknown> = {
      limiter: async () => {
        calls += 1;
        return calls > 4 ? paid : free;
      },
      key: () => "everyone",
      cost: async () => 2,
      skip: async () => calls >= 6,
    };
    const { url } = await start([guard]);
    const answers = [];
    for (let n = 0; n < 7; n++) answers.push(await get(url));
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 429, 429, 200, 200, 200]);
    expect(answers[0]?.headers.get("RateLimit")).toMatch(/^"free";r=1/);
    expect(answers[5]?.headers.get("RateLimit")).toMatch(/^"paid";r=96/);
    expect(answers[6]?.headers.has("RateLimit")).toBe(false);
    expect((await paid.status("everyone"))[0]).toMatchObject({ count: 4 });
  });

  test("a refusal can be put in other words", async () => {
    const { url } = await start([
      {
        limiter: hour(1),
        refuse: async ({ headers }, { retryAfterMs, limit }) => ({
          status: 420,
          headers: { ...headers, "Content-Type": "text/plain", "X-Calm": "yes" },
          body: `${limit} used, wait ${retryAfterMs > 3_590_000}`,
        }),
      },
    ]);
    await get(url);
    const refused = await get(url);
    expect([refused.status, refused.body]).toEqual([420, "1 used, wait true"]);
    expect(refused.headers.get("X-Calm")).toBe("yes");
    expect(refused.headers.get("Content-Type")).toMatch(/^text\/plain/);
    expect(refused.headers.has("Retry-After")).toBe(true);
  });

  test("a handler that throws still tells where the client stands, and settles", async () => {
    const answers: Answer[] = [];
    const settle = (answer: Answer) => {
      answers.push(answer);
      return 1;
    };
    const { url } = await start([{ limiter: hour(2), settle }], () => new Error("on purpose"));
    const failed = await get(url);
    expect(failed.status).toBe(500);
    await vi.waitFor(() => expect(answers).toMatchObject([{ status: 500, aborted: false }]));
    if (adapter !== "fetch") expect(failed.headers.get("RateLimit")).toMatch(/^"hour";r=1/);
  });

  test("a key that throws is the server's error, and the next request is served", async () => {
    const onError = vi.fn();
    let broken = true;
    const key = () => {
      if (broken) throw new Error("on purpose");
      return "someone";
    };
    const { url } = await start([{ limiter: hour(2), key, onError }]);
    expect((await get(url)).status).toBe(500);
    broken = false;
    expect((await get(url)).status).toBe(200);
  });

  test("a settle that throws keeps what was taken, and tells", async () => {
    const onError = vi.fn();
    const limiter = hour(2);
    const settle = () => Number.NaN;
    const { url } = await start([{ limiter, settle, onError }]);
    await get(url);
    await vi.waitFor(() => expect(onError).toHaveBeenCalledTimes(1));
    expect(onError.mock.calls[0]?.[0]).toMatchObject({ code: "INVALID_COST" });
    expect(await used(limiter)).toBe(1);
  });

  test("scripts of other origins may read the headers, where that is wished", async () => {
    const { url } = await start([{ limiter: hour(5), exposeHeaders: true }]);
    expect((await get(url)).headers.has("Access-Control-Expose-Headers")).toBe(false);
    const { headers } = await get(url, { Origin: "https://example.com" });
    expect(headers.get("Access-Control-Expose-Headers")).toBe("RateLimit-Policy, RateLimit, Retry-After");
  });

  describe("who is counted", () => {
    const remaining = async (url: string, headers: Record<string, string>) =>
      Number(/r=(\d+)/.exec((await get(url, headers)).headers.get("RateLimit") ?? "")?.[1]);

    test("a forged X-Forwarded-For changes nothing while no proxy is trusted, and is warned of once", async () => {
      const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
      const { url } = await start([{ limiter: hour(100) }]);
      for (let n = 0; n < 5; n++) {
        const forged = { "X-Forwarded-For": `203.0.113.${n}`, Forwarded: `for=203.0.113.${n}` };
        expect(await remaining(url, forged)).toBe(99 - n);
      }
      expect(warn).toHaveBeenCalledTimes(1);
      warn.mockRestore();
    });

    test.each([
      ["one hop", { trustProxy: 1 }],
      ["the proxy's address", { trustProxy: ["127.0.0.0/8"] }],
    ])("behind %s, what the client wrote to the left changes nothing", async (_, trust) => {
      const { url } = await start([{ limiter: hour(100), ...trust }]);
      for (let n = 0; n < 5; n++) {
        const chain = `10.0.0.${n}, 198.51.100.${n}, 203.0.113.9`;
        expect(await remaining(url, { "X-Forwarded-For": chain })).toBe(99 - n);
      }
      expect(await remaining(url, { "X-Forwarded-For": "203.0.113.10" })).toBe(99);
    });

    test("IPv4-mapped addresses are as many clients as they are addresses", async () => {
      const { url } = await start([{ limiter: hour(100), trustProxy: 1 }]);
      expect(await remaining(url, { "X-Forwarded-For": "::ffff:192.0.2.1" })).toBe(99);
      expect(await remaining(url, { "X-Forwarded-For": "::ffff:192.0.2.2" })).toBe(99);
      expect(await remaining(url, { "X-Forwarded-For": "::ffff:c000:201" })).toBe(98);
      expect(await remaining(url, { "X-Forwarded-For": "192.0.2.1" })).toBe(97);
    });

    test("keys and headers that a client chooses never reach the answer's headers", async () => {
      const { url } = await start([{ limiter: hour(100), key: ["ip", "header:x-api-key"] }]);
      for (const value of ['"; r=999, "x', "%0d%0aSet-Cookie: a=b", "a,b;c=d", "é", " "]) {
        const { headers } = await get(url, { "X-Api-Key": value });
        expect(headers.get("RateLimit-Policy")).toBe('"hour";q=100;w=3600');
        expect(headers.get("RateLimit")).toMatch(/^"hour";r=\d+;t=\d+$/);
        expect(headers.has("Set-Cookie")).toBe(false);
      }
    });
  });
});

async function statuses(url: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let n = 0; n < times; n++) seen.push((await get(url)).status);
  return seen;
}
