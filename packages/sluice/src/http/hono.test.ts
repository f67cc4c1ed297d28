import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { afterEach, expect, test } from "vitest";
import { listen, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { type RateLimitOptions, rateLimit } from "./hono.js";

const opened: Pick<Running, "close">[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((running) => running.close()));
});
const hour = (limit: number) => createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h" }) });

test("anywhere but on Node, the response itself carries the headers", async () => {
  const app = new Hono();
  app.use(rateLimit({ limiter: hour(1), peer: () => "192.0.2.1" }));
  app.get("/", () => new Response("raw"));
  const [passed, refused] = [await app.request("/"), await app.request("/")];
  expect(passed.headers.get("RateLimit")).toMatch(/^"hour";r=0;t=3600$/);
  expect([await passed.text(), refused.status]).toEqual(["raw", 429]);
});

test("the addresses that Bun and Deno know are found", async () => {
  const limiter = hour(5);
  const app = new Hono();
  app.use(rateLimit({ limiter }));
  app.onError((error, c) => c.text(String("code" in error && error.code), 500));
  app.get("/", (c) => c.text("ok"));
  const request = new Request("http://localhost/");
  await app.fetch(request, { remoteAddr: { hostname: "192.0.2.1" } });
  await app.fetch(request, { requestIP: () => ({ address: "::ffff:192.0.2.1" }) });
  expect((await limiter.status("192.0.2.1"))[0]?.count).toBe(2);
  expect(await (await app.fetch(request, {})).text()).toBe("NO_ADDRESS");
});

test("options that no guard knows are refused", () => {
  const unknown = { limiter: hour(1), peers: () => "192.0.2.1" } as RateLimitOptions;
  expect(() => rateLimit(unknown)).toThrow('no option "peers"');
});

test("on Node, headers that a handler uses for many answers stay its own", async () => {
  const shared = { "Content-Type": "text/plain" };
  const app = new Hono();
  app.use("/guarded", rateLimit({ limiter: hour(5) }));
  app.get("*", () => new Response("ok", { headers: shared }));
  const running = await listen(getRequestListener(app.fetch));
  opened.push(running);
  const told = async (path: string) => (await fetch(`${running.url}${path}`)).headers.get("RateLimit");
  expect(await told("/guarded")).toMatch(/^"hour";r=4/);
  expect(await told("/open")).toBeNull();
  expect(shared).toEqual({ "Content-Type": "text/plain" });
});

test("on Node, what a handler tells under the same names gives way", async () => {
  const app = new Hono();
  app.use(rateLimit({ limiter: hour(5) }));
  app.get("*", () => new Response("ok", { headers: { ratelimit: "made up", "Set-Cookie": "a=b" } }));
  const running = await listen(getRequestListener(app.fetch));
  opened.push(running);
  const { headers } = await fetch(running.url);
  expect(headers.get("RateLimit")).toMatch(/^"hour";r=4;t=\d+$/);
  expect(headers.get("Set-Cookie")).toBe("a=b");
});

test("on Node, guards behind one that settles are told of as well", async () => {
  const app = new Hono();
  app.use(rateLimit({ limiter: hour(9), settle: () => 1 }), rateLimit({ limiter: hour(5) }));
  app.get("*", (c) => c.text("ok"));
  const running = await listen(getRequestListener(app.fetch));
  opened.push(running);
  expect((await fetch(running.url)).headers.get("RateLimit")).toMatch(/^"hour";r=8;t=\d+, "hour";r=4;t=\d+$/);
});

test("on Node, a handler that writes its answer by itself tells of the decision, too", async () => {
  const app = new Hono<{ Bindings: { outgoing: import("node:http").ServerResponse } }>();
  app.use(rateLimit({ limiter: hour(5) }));
  app.get("*", (c) => {
    c.env.outgoing.writeHead(201, "Made", { "X-Own": "yes" }).end("made");
    return RESPONSE_ALREADY_SENT;
  });
  const running = await listen(getRequestListener(app.fetch));
  opened.push(running);
  const { status, headers } = await fetch(running.url);
  expect([status, headers.get("X-Own")]).toEqual([201, "yes"]);
  expect(headers.get("RateLimit")).toMatch(/^"hour";r=4/);
});
