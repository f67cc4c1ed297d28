// Real servers on loopback and a real client, for each adapter and store: what is counted, and when it is settled.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { afterEach, describe, expect, test, vi } from "vitest";
import { get, used } from "../../test/httpClient.js";
import { adapters, type Guards, type Handler, type Running } from "../../test/servers.js";
import { useRedis } from "../../test/useRedis.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { redisStore } from "../stores/redis/index.js";
import type { Answer } from "./options.js";

const { redis } = useRedis();

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(redis, { prefix: `${randomUUID()}:` }),
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
});

/** A promise that is resolved from outside. */
function gateway(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
