// Real servers on loopback and a real client, for each adapter and store.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { type OpenClient, singleClients } from "../../test/redisClients.js";
import { type RedisServer, startRedis } from "../../test/redisServer.js";
import { adapters, type Guards, type Handler, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { redisStore } from "../stores/redis/index.js";
import type { Answer, GuardOptions } from "./options.js";

let redis: RedisServer;
let connection: OpenClient;
beforeAll(async () => {
  redis = await startRedis();
  connection = await singleClients["ioredis 6"](redis.port);
});
afterAll(async () => {
  await connection.close();
  await redis.stop();
});

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(connection.client, { prefix: `${randomUUID()}:` }),
};

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

  describe.each(Object.entries(stores))("on %s", (_, makeStore) => {
    function limiterOf(limit: number, name = "hour", store = makeStore()) {
      return createLimiter({ name: "test", store, rules: slidingLog({ name, limit, window: "1h" }) });
    }

    test("of many requests in parallel exactly the limit passes, and only those reach the handler", async () => {
      let handled = 0;
      const { url } = await start([{ limiter: limiterOf(50) }], () => {
        handled += 1;
        return { body: "ok" };
      });
      const statuses = await Promise.all(Array.from({ length: 200 }, () => get(url).then((r) => r.status)));
      expect(statuses.filter((status) => status === 200)).toHaveLength(50);
      expect(statuses.filter((status) => status === 429)).toHaveLength(150);
      expect(handled).toBe(50);
    });

    test("every answer tells where the client stands, and a refusal when to come back", async () => {
      const { url } = await start([{ limiter: limiterOf(1) }]);
      const [passed, refused] = [await get(url), await get(url)];
      for (const { headers } of [passed, refused]) {
        expect(headers.get("RateLimit-Policy")).toBe('"hour";q=1;w=3600');
        expect(headers.get("RateLimit")).toMatch(/^"hour";r=0;t=3\d{3}$/);
      }
      expect([passed.status, refused.status]).toEqual([200, 429]);
      expect(passed.headers.has("Retry-After")).toBe(false);
      expect(Number(refused.headers.get("Retry-After"))).toBeGreaterThan(3590);
      expect(refused.headers.get("Content-Type")).toMatch(/^application\/problem\+json/);
      expect(JSON.parse(refused.body)).toEqual({
        type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
        title: "Quota exceeded",
        status: 429,
        detail: "1 requests per 3600 s",
        "violated-policies": ["hour"],
      });
    });

    test("charging failures alone, attempts in parallel cannot slip past while the answers are pending", async () => {
      const limiter = limiterOf(3);
      const gate = gateway();
      const settle = ({ status }: Answer) => (status === 401 ? 1 : 0);
      const { url } = await start([{ limiter, settle }], async (path) => {
        await gate.promise;
        return { status: path === "/right" ? 200 : 401, body: "" };
      });
      const attempts = Array.from({ length: 10 }, () => get(`${url}/wrong`));
      await Promise.race(attempts); // a refusal: the others wait for their answers
      gate.resolve();
      const statuses = (await Promise.all(attempts)).map(({ status }) => status).sort();
      expect(statuses).toEqual([401, 401, 401, 429, 429, 429, 429, 429, 429, 429]);

      await limiter.reset("127.0.0.1");
      for (let n = 0; n < 20; n++) {
        expect((await get(`${url}/right`)).status).toBe(200);
        await vi.waitFor(async () => expect(await used(limiter)).toBe(0));
      }
    });

    test("bytes are charged as they are sent, and the debt is paid before the next request", async () => {
      const limiter = limiterOf(1000);
      const settle = ({ bytes }: Answer) => bytes;
      const { url } = await start([{ limiter, settle, unit: "content-bytes" }], () => ({
        body: "é".repeat(1500),
      }));
      const passed = await get(url);
      expect(passed.headers.get("RateLimit-Policy")).toBe('"hour";q=1000;qu="content-bytes";w=3600');
      await vi.waitFor(async () => expect(await used(limiter)).toBe(3000));
      expect((await get(url)).status).toBe(429);
      await limiter.reset("127.0.0.1");
      expect((await fetch(url, { method: "HEAD" })).status).toBe(200);
      await vi.waitFor(async () => expect(await used(limiter)).toBe(0));
    });

    test("a client that leaves before the answer settles", async () => {
      const limiter = limiterOf(5);
      const answers: Answer[] = [];
      const arrived = gateway();
      const gate = gateway();
      const settle = (answer: Answer) => {
        answers.push(answer);
        return 0;
      };
      const { url } = await start([{ limiter, settle }], async () => {
        arrived.resolve();
        await gate.promise;
        return { body: "too late" };
      });
      const controller = new AbortController();
      const attempt = fetch(url, { signal: controller.signal });
      await arrived.promise;
      expect(await used(limiter)).toBe(1);
      controller.abort();
      await expect(attempt).rejects.toThrow();
      await vi.waitFor(async () => expect(await used(limiter)).toBe(0));
      gate.resolve();
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(answers).toEqual([{ status: 499, bytes: 0, aborted: true }]);
    });

    test("a client that leaves in mid-answer settles", async () => {
      const limiter = limiterOf(5);
      const answers: Answer[] = [];
      const settle = (answer: Answer) => {
        answers.push(answer);
        return 3;
      };
      const { url } = await start([{ limiter, settle }], () => ({ body: "x".repeat(50_000_000) }));
      const request = httpRequest(url).end();
      const [response] = await once(request, "response");
      await once(response, "data");
      request.destroy();
      await vi.waitFor(async () => expect(await used(limiter)).toBe(3));
      // A server of fetch handlers takes a body of one piece as a whole, whatever it then does with it.
      const aborted = adapter !== "hono" && adapter !== "fetch";
      expect(answers).toMatchObject([{ status: 200, aborted }]);
    });
  });

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

  describe("while the store is out", () => {
    const dead: Readonly<Record<string, () => Promise<never>>> = {
      rejects: () => Promise.reject(new Error("connection lost")),
      throws: () => {
        throw new Error("no connection");
      },
      hangs: () => new Promise<never>(() => {}),
    };
    const storeThat = (decide: () => Promise<never>): Store => ({ ...base(), sync: false, decide });

    test.each(Object.entries(dead))("it %s: open lets pass, without made-up numbers", async (_, decide) => {
      const onError = vi.fn();
      const limiter = createLimiter({
        store: storeThat(decide),
        rules: slidingLog({ limit: 1, window: "1h" }),
      });
      const { url } = await start([{ limiter, timeoutMs: 50, onError }], (_, decision) => ({
        body: String(decision?.degraded),
      }));
      const answers = await Promise.all([get(url), get(url)]);
      for (const { status, body, headers } of answers) {
        expect([status, body, headers.get("RateLimit")]).toEqual([200, "open", null]);
      }
      expect(onError).toHaveBeenCalledTimes(2);
    });

    test.each(Object.entries(dead))("it %s: closed is 503, and nobody's fault", async (_, decide) => {
      const limiter = createLimiter({
        store: storeThat(decide),
        rules: slidingLog({ limit: 1, window: "1h" }),
      });
      const handler = vi.fn(() => ({ body: "ok" }));
      const guard = { limiter, timeoutMs: 50, onError: () => {}, onOutage: "closed" as const };
      const { url } = await start([guard], handler);
      const { status, body, headers } = await get(url);
      expect(status).toBe(503);
      expect(headers.get("Content-Type")).toMatch(/^application\/problem\+json/);
      expect(JSON.parse(body)).toMatchObject({
        type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        status: 503,
      });
      expect(headers.has("RateLimit")).toBe(false);
      expect(handler).not.toHaveBeenCalled();
    });

    test("a store that decided for itself is obeyed: closed is 503, open passes, local is a true answer", async () => {
      const by = (degraded: "open" | "closed" | "local", allowed: boolean) => {
        const decision = { rule: "1h", allowed, limit: 9, remaining: 4, at: 0, degraded };
        const times = { retryAfterMs: allowed ? 0 : 1500, resetAfterMs: 1500 };
        const store: Store = { ...base(), sync: false, decide: async () => [{ ...decision, ...times }] };
        return createLimiter({ store, rules: slidingLog({ limit: 9, window: "1h" }) });
      };
      const ask = async (limiter: ReturnType<typeof by>) => get((await start([{ limiter }])).url);
      expect((await ask(by("closed", false))).status).toBe(503);
      const open = await ask(by("open", true));
      expect([open.status, open.headers.has("RateLimit")]).toEqual([200, false]);
      const local = await ask(by("local", false));
      expect([local.status, local.headers.get("Retry-After")]).toEqual([429, "2"]);
      expect(local.headers.get("RateLimit")).toBe('"1h";r=4;t=2');
    });
  });
});

/** The methods of a store that a limiter needs to be made. */
function base(): Store {
  const store = memoryStore();
  return {
    sync: store.sync,
    decide: (charges, commit) => store.decide(charges, commit),
    settle: (settlements) => store.settle(settlements),
    status: (charges) => store.status(charges),
    count: (charge, from, to) => store.count(charge, from, to),
    reset: (charges) => store.reset(charges),
    close: () => store.close(),
  };
}

/** A promise that is resolved from outside. */
function gateway(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

async function used(limiter: ReturnType<typeof createLimiter>): Promise<number | undefined> {
  return (await limiter.status("127.0.0.1"))[0]?.count;
}

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

async function statuses(url: string, times: number): Promise<number[]> {
  const seen: number[] = [];
  for (let n = 0; n < times; n++) seen.push((await get(url)).status);
  return seen;
}
