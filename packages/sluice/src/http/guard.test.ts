import { once } from "node:events";
import { connect } from "node:net";
import { fastify } from "fastify";
import { Hono } from "hono";
import { afterEach, describe, expect, test, vi } from "vitest";
import { singleClients } from "../../test/redisClients.js";
import { startRedis } from "../../test/redisServer.js";
import { listen, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { redisStore } from "../stores/redis/index.js";
import * as forFastify from "./fastify.js";
import * as forFetch from "./fetch.js";
import { createGuard, type Platform } from "./guard.js";
import * as hono from "./hono.js";
import * as node from "./node.js";
import type { Answer, GuardOptions } from "./options.js";

const opened: Pick<Running, "close">[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((running) => running.close()));
});
const hour = (limit: number, by?: readonly string[]) =>
  createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h", ...(by && { by }) }) });

describe("options", () => {
  const platform: Platform<object> = { peer: () => "192.0.2.1", header: () => undefined };
  const limiter = hour(1);

  test.each<[object | undefined, string]>([
    [undefined, "A guard takes { limiter } or { limit, window }"],
    [{}, "needs a limiter, or a limit and a window"],
    [{ limit: 1 }, "needs a limiter, or a limit and a window"],
    [{ limiter, limit: 1, window: "1m" }, "not both"],
    [{ limiter: {} }, "must be made by createLimiter"],
    [{ limit: 0, window: "1m" }, "slidingLog's limit"],
    [{ limiter, headers: "draft-8" }, "headers must be one of"],
    [{ limiter, onOutage: "pass" }, 'onOutage must be "open" or "closed"'],
    [{ limiter, skip: true }, "skip must be a function"],
    [{ limiter, settle: 1 }, "settle must be a function"],
    [{ limiter, cost: Number.NaN }, "A guard's cost"],
    [{ limiter, unit: 'x"\r\n' }, "A guard's unit"],
    [{ limiter, timeoutMs: 0 }, "timeoutMs"],
    [{ limiter, ipv6Prefix: 0 }, "ipv6Prefix"],
    [{ limiter, trustProxy: true }, "the client's own word"],
    [{ limiter: hour(1, ["user"]) }, 'Rule "hour" counts by user, but the guard\'s key has no user'],
    [{ limiter: hour(1, ["user"]), key: ["ip"] }, "has no user"],
  ])("%j are refused at the start", (options, message) => {
    expect(() => createGuard(options as GuardOptions<object>, platform)).toThrow(message);
  });

  test("a client without an address is refused rather than counted with all others", () => {
    const guard = createGuard({ limiter }, { ...platform, peer: () => undefined });
    expect(() => guard.admit({})).toThrow("no known address");
  });

  test("an onError that throws harms nobody", async () => {
    const onError = () => {
      throw new Error("on purpose");
    };
    const broken = hour(1);
    await broken.close();
    const verdict = await createGuard({ limiter: broken, onError }, platform).admit({});
    expect(verdict?.decision).toMatchObject({ allowed: true, degraded: "open" });
  });
});

test("two dimensions are one decision: account and address together", async () => {
  const limiter = createLimiter({
    rules: [
      slidingLog({ name: "account", limit: 2, window: "1h", by: ["account"] }),
      slidingLog({ name: "address", limit: 5, window: "1h", by: ["ip"] }),
    ],
  });
  const platform: Platform<{ ip: string; account?: string }> = {
    peer: ({ ip }) => ip,
    header: () => undefined,
  };
  const guard = createGuard({ limiter, key: { account: ({ account }) => account, ip: "ip" } }, platform);
  const ask = async (ip: string, account?: string) =>
    (await guard.admit(account === undefined ? { ip } : { ip, account }))?.decision;
  expect((await ask("192.0.2.1", "a"))?.allowed).toBe(true);
  expect((await ask("192.0.2.2", "a"))?.allowed).toBe(true);
  expect(await ask("192.0.2.3", "a")).toMatchObject({ allowed: false, rule: "account" });
  expect((await limiter.status({ ip: "192.0.2.3", account: "x" }))[1]?.count).toBe(0);
  for (const account of ["b", "c", "d", "e"]) expect((await ask("192.0.2.1", account))?.allowed).toBe(true);
  expect(await ask("192.0.2.1", "f")).toMatchObject({ allowed: false, rule: "address" });
});

test("requests in a pipeline whose client leaves all settle", async () => {
  const limiter = hour(10);
  const answers: Answer[] = [];
  const settle = (answer: Answer) => {
    answers.push(answer);
    return 0;
  };
  const running = await listen(node.rateLimit({ limiter, settle }, () => {})); // never answers
  opened.push(running);
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3));
  await vi.waitFor(async () => expect((await limiter.status("127.0.0.1"))[0]?.count).toBe(3));
  socket.destroy();
  await vi.waitFor(() =>
    expect(answers).toEqual(new Array(3).fill({ status: 499, bytes: 0, aborted: true })),
  );
  await vi.waitFor(async () => expect((await limiter.status("127.0.0.1"))[0]?.count).toBe(0));
});

test("requests in a pipeline that are answered settle once, and leave no listener behind", async () => {
  const answers: Answer[] = [];
  const settle = (answer: Answer) => {
    answers.push(answer);
    return 1;
  };
  let listeners = 0;
  const running = await listen(
    node.rateLimit({ limiter: hour(100), settle }, (request, response) => {
      listeners = request.socket.listenerCount("close");
      setTimeout(() => response.end("ok"), 5);
    }),
  );
  opened.push(running);
  const socket = connect(Number(new URL(running.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(8));
  await vi.waitFor(() => expect(answers).toHaveLength(8));
  const most = listeners;
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await vi.waitFor(() => expect(answers).toHaveLength(9));
  expect(answers).toEqual(new Array(9).fill({ status: 200, bytes: 2, aborted: false }));
  expect(listeners).toBeLessThan(most);
  socket.destroy();
});

test("a Redis that dies and comes back: 503 at once while it is out, and exact again after", async () => {
  const server = await startRedis();
  const { client, close } = await singleClients["ioredis 6"](server.port);
  (client as unknown as NodeJS.EventEmitter).on("error", () => {});
  const limiter = createLimiter({
    store: redisStore(client),
    rules: slidingLog({ name: "hour", limit: 3, window: "1h" }),
  });
  const options = { limiter, timeoutMs: 200, onOutage: "closed", onError: () => {} } as const;
  const running = await listen(node.rateLimit(options, (_, response) => response.end("ok")));
  opened.push(running);
  const statuses = async (n: number) => {
    const asked = Array.from({ length: n }, async () => (await fetch(running.url)).status);
    return (await Promise.all(asked)).sort();
  };
  expect(await statuses(5)).toEqual([200, 200, 200, 429, 429]);
  await server.kill();
  const startedAt = performance.now();
  expect(await statuses(5)).toEqual([503, 503, 503, 503, 503]);
  expect(performance.now() - startedAt).toBeLessThan(2000);
  await server.restart();
  await vi.waitFor(async () => expect(await statuses(1)).not.toContain(503), {
    timeout: 10_000,
    interval: 50,
  });
  await limiter.reset("127.0.0.1");
  expect(await statuses(5)).toEqual([200, 200, 200, 429, 429]);
  await close();
  await server.stop();
});

describe("fastify", () => {
  test("routes differ by their config, share the limiter unless they bring one, and 404 is guarded", async () => {
    const app = fastify();
    opened.push(app);
    app.register(forFastify.rateLimit, { limiter: hour(10) });
    app.get("/early", () => "declared before the plugin is loaded");
    app.get("/costly", { config: { rateLimit: { cost: 5 } } }, () => "ok");
    app.get("/own", { config: { rateLimit: { limiter: hour(1) } } }, () => "ok");
    app.get("/free", { config: { rateLimit: false } }, (request) => String(request.rateLimit));
    const remaining = async (url: string) => {
      const { headers } = await app.inject(url);
      return /r=(\d+)/.exec(String(headers.ratelimit))?.[1];
    };
    expect(await remaining("/early")).toBe("9");
    expect(await remaining("/costly")).toBe("4");
    expect(await remaining("/own")).toBe("0");
    expect(await remaining("/missing")).toBe("3");
    expect(await remaining("/free")).toBeUndefined();
    expect((await app.inject("/free")).body).toBe("null");
    expect((await app.inject("/own")).statusCode).toBe(429);
  });

  test("a rule without a limiter is one limiter for all routes", async () => {
    const app = fastify();
    opened.push(app);
    await app.register(forFastify.rateLimit, { limit: 3, window: "1h" });
    app.get("/", () => "ok");
    app.get("/costly", { config: { rateLimit: { cost: 2 } } }, () => "ok");
    await app.inject("/");
    expect((await app.inject("/costly")).statusCode).toBe(200);
    expect((await app.inject("/")).statusCode).toBe(429);
  });

  test("without a limiter only the routes are guarded that bring one", async () => {
    const app = fastify();
    opened.push(app);
    await app.register(forFastify.rateLimit);
    app.get("/", () => "ok");
    app.get("/guarded", { config: { rateLimit: { limit: 1, window: "1h" } } }, () => "ok");
    expect((await app.inject("/")).headers.ratelimit).toBeUndefined();
    expect((await app.inject("/guarded")).headers.ratelimit).toBeDefined();
  });

  test("bad options of a route show when it is declared", async () => {
    const app = fastify();
    await app.register(forFastify.rateLimit);
    expect(() => app.get("/", { config: { rateLimit: { limit: 0, window: "1h" } } }, () => "ok")).toThrow(
      "slidingLog's limit",
    );
    await expect(fastify().register(forFastify.rateLimit, { hook: "onSend" as never })).rejects.toThrow(
      "hook must be",
    );
  });

  test("after the body is read, it can name the key", async () => {
    const app = fastify();
    opened.push(app);
    const key = (request: { body: unknown }) => (request.body as { email?: string } | undefined)?.email;
    await app.register(forFastify.rateLimit, { limit: 1, window: "1h", hook: "preHandler", key });
    app.post("/", () => "ok");
    const post = async (email: string) =>
      (await app.inject({ method: "POST", url: "/", payload: { email } })).statusCode;
    expect([await post("a"), await post("b"), await post("a")]).toEqual([200, 200, 429]);
  });
});

describe("fetch", () => {
  test("a guard that cannot know addresses is refused at the start", () => {
    expect(() => forFetch.rateLimit({ limiter: hour(1) }, () => new Response())).toThrow(
      "does not know where",
    );
  });

  test("a response that cannot be changed is copied", async () => {
    const guarded = forFetch.rateLimit({ limiter: hour(5), peer: () => "192.0.2.1" }, () =>
      Response.redirect("https://example.com/", 302),
    );
    const response = await guarded(new Request("https://example.com/a"));
    expect([response.status, response.headers.get("RateLimit-Policy")]).toEqual([302, '"hour";q=5;w=3600']);
  });

  test("a body settles when it is read to its end, and when its reader leaves", async () => {
    const answers: Answer[] = [];
    const settle = (answer: Answer) => {
      answers.push(answer);
      return answer.bytes;
    };
    const limiter = hour(1000);
    const guarded = forFetch.rateLimit({ limiter, settle, peer: () => "192.0.2.1" }, () => {
      let n = 0;
      const pull = (controller: ReadableStreamDefaultController) => {
        controller.enqueue(new Uint8Array(100));
        n += 1;
        if (n === 5) controller.close();
      };
      return new Response(new ReadableStream({ pull }), { headers: { "Content-Type": "image/png" } });
    });
    const request = () => guarded(new Request("https://example.com/"));
    const response = await request();
    expect(response.headers.get("Content-Type")).toBe("image/png");
    expect(answers).toEqual([]);
    expect((await response.arrayBuffer()).byteLength).toBe(500);
    const reader = (await request()).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(answers).toEqual([
      { status: 200, bytes: 500, aborted: false },
      { status: 200, bytes: 100, aborted: true },
    ]);
    await vi.waitFor(async () => expect((await limiter.status("192.0.2.1"))[0]?.count).toBe(600));
  });
});

describe("hono", () => {
  test("anywhere but on Node, the response itself carries the headers", async () => {
    const app = new Hono();
    app.use(hono.rateLimit({ limiter: hour(1), peer: () => "192.0.2.1" }));
    app.get("/", () => new Response("raw"));
    const [passed, refused] = [await app.request("/"), await app.request("/")];
    expect(passed.headers.get("RateLimit")).toMatch(/^"hour";r=0;t=3600$/);
    expect([await passed.text(), refused.status]).toEqual(["raw", 429]);
  });

  test("the addresses that Bun and Deno know are found", async () => {
    const limiter = hour(5);
    const app = new Hono();
    app.use(hono.rateLimit({ limiter }));
    app.onError((error, c) => c.text(String("code" in error && error.code), 500));
    app.get("/", (c) => c.text("ok"));
    const request = new Request("http://localhost/");
    await app.fetch(request, { remoteAddr: { hostname: "192.0.2.1" } });
    await app.fetch(request, { requestIP: () => ({ address: "::ffff:192.0.2.1" }) });
    expect((await limiter.status("192.0.2.1"))[0]?.count).toBe(2);
    expect(await (await app.fetch(request, {})).text()).toBe("NO_ADDRESS");
  });
});
