import { fastify } from "fastify";
import { afterEach, expect, test } from "vitest";
import type { Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { type PluginOptions, rateLimit } from "./fastify.js";

const opened: Pick<Running, "close">[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((running) => running.close()));
});
const hour = (limit: number) => createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h" }) });

test("routes differ by their config, share the limiter unless they bring one, and 404 is guarded", async () => {
  const app = fastify();
  opened.push(app);
  app.register(rateLimit, { limiter: hour(10) });
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
  await app.register(rateLimit, { limit: 3, window: "1h" });
  app.get("/", () => "ok");
  app.get("/costly", { config: { rateLimit: { cost: 2 } } }, () => "ok");
  await app.inject("/");
  expect((await app.inject("/costly")).statusCode).toBe(200);
  expect((await app.inject("/")).statusCode).toBe(429);
});

test("without a limiter only the routes are guarded that bring one", async () => {
  const app = fastify();
  opened.push(app);
  await app.register(rateLimit);
  app.get("/", () => "ok");
  app.get("/guarded", { config: { rateLimit: { limit: 1, window: "1h" } } }, () => "ok");
  expect((await app.inject("/")).headers.ratelimit).toBeUndefined();
  expect((await app.inject("/guarded")).headers.ratelimit).toBeDefined();
});

test("bad options of a route show when it is declared", async () => {
  const app = fastify();
  await app.register(rateLimit);
  expect(() => app.get("/", { config: { rateLimit: { limit: 0, window: "1h" } } }, () => "ok")).toThrow(
    "A guard's limit",
  );
  await expect(fastify().register(rateLimit, { hook: "onSend" as never })).rejects.toThrow("hook must be");
});

test("after the body is read, it can name the key", async () => {
  const app = fastify();
  opened.push(app);
  const key = (request: { body: unknown }) => (request.body as { email?: string } | undefined)?.email;
  await app.register(rateLimit, { limit: 1, window: "1h", hook: "preHandler", key });
  app.post("/", () => "ok");
  const post = async (email: string) =>
    (await app.inject({ method: "POST", url: "/", payload: { email } })).statusCode;
  expect([await post("a"), await post("b"), await post("a")]).toEqual([200, 200, 429]);
});

test("options that no guard knows are refused: the plugin's, and a route's", async () => {
  const unknown = { trustproxy: 1 } as PluginOptions;
  await expect(fastify().register(rateLimit, unknown)).rejects.toThrow('no option "trustproxy"');
  const app = fastify();
  await app.register(rateLimit, { prefix: "/v1", logLevel: "warn" }); // Fastify's own
  expect(() =>
    app.get("/", { config: { rateLimit: { ...unknown, limit: 1, window: "1h" } } }, () => "ok"),
  ).toThrow('no option "trustproxy"');
});
