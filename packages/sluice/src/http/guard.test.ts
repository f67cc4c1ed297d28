import { afterEach, expect, test, vi } from "vitest";
import { singleClients } from "../../test/redisClients.js";
import { startRedis } from "../../test/redisServer.js";
import { listen, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { redisStore } from "../stores/redis/index.js";
import { createGuard, type Platform } from "./guard.js";
import * as node from "./node.js";

const opened: Pick<Running, "close">[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((running) => running.close()));
});
const hour = (limit: number) => createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h" }) });
const platform: Platform<object> = { peer: () => "192.0.2.1", header: () => undefined };

test("a client without an address is refused rather than counted with all others", () => {
  const guard = createGuard({ limiter: hour(1) }, { ...platform, peer: () => undefined });
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

test("what a limiter decided stays as it was: the headers are on the request's own copy", async () => {
  const limiter = hour(2);
  const decision = Object.freeze(limiter.tryAcquireSync("a"));
  vi.spyOn(limiter, "tryAcquireSync").mockReturnValue(decision);
  const verdict = await createGuard({ limiter }, platform).admit({});
  expect(verdict?.decision).toMatchObject({
    remaining: 1,
    headers: [
      ["RateLimit-Policy", '"hour";q=2;w=3600'],
      ["RateLimit", '"hour";r=1;t=3600'],
    ],
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

test("a rule of the guard's own settles as a limiter's does, and what cannot be settled stays taken", async () => {
  const reported: unknown[] = [];
  const actual = [0, 1, Number.NaN];
  const guard = createGuard(
    {
      limit: 3,
      window: "1h",
      cost: 2,
      settle: () => actual.shift() ?? 0,
      onError: (error) => reported.push(error),
    },
    platform,
  );
  const ask = async () => {
    const verdict = await guard.admit({});
    const answer = { status: 200, bytes: 0, aborted: false };
    verdict?.settle?.(answer);
    verdict?.settle?.(answer); // once is all that counts
    await new Promise(setImmediate);
    return verdict?.decision;
  };
  expect(await ask()).toMatchObject({ allowed: true, rule: "1h", remaining: 1 });
  expect(await ask()).toMatchObject({ allowed: true, remaining: 1 });
  expect(await ask()).toMatchObject({ allowed: true, remaining: 0 });
  expect(await ask()).toMatchObject({ allowed: false, remaining: 0 });
  expect(reported).toMatchObject([{ code: "INVALID_COST" }]);
});
