// Real servers on loopback and a real client, for each adapter: what becomes of requests while the store is out.
import { afterEach, describe, expect, test, vi } from "vitest";
import { get } from "../../test/httpClient.js";
import { adapters, type Guards, type Handler, type Running } from "../../test/servers.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((resource) => resource.close()));
});

describe.each(Object.entries(adapters))("%s", (_adapter, startServer) => {
  async function start(guards: Guards, handler: Handler = () => ({ body: "ok" })): Promise<Running> {
    const running = await startServer(guards, handler);
    opened.push(running);
    return running;
  }

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
