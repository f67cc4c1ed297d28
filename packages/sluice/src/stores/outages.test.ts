// Outages for real: a server stopped, killed, promoted or full, and a network that delays, drops and half-opens.
import { Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../test/redisServer.js";
import { startProxy, type TcpProxy } from "../../test/tcpProxy.js";
import type { Decision } from "../decision.js";
import { createLimiter, type Limiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { RedisClient } from "./redis/index.js";
import { redisStore } from "./redis/index.js";
import { type OutagePolicy, resilient } from "./resilient.js";

const DEADLINE_MS = 50;
/** Half of the calls of a busy test machine are expected this close to the deadline. */
const SLACK_MS = 25;

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const cleanUp: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanUp.splice(0).reverse()) await clean();
});

interface Sample {
  readonly startedAt: number;
  readonly tookMs: number;
  readonly decision: Decision;
}

/** Calls every few milliseconds, and measures how long this process itself was kept from running. */
class Load {
  readonly samples: Sample[] = [];
  readonly errors: unknown[] = [];
  /** The longest this process was late for its own timers. */
  stallMs = 0;
  #running = true;
  readonly #done: Promise<unknown>;

  constructor(limiter: Limiter) {
    this.#done = Promise.all([this.#call(limiter), this.#watch()]);
  }

  async #call(limiter: Limiter): Promise<void> {
    for (let n = 0; this.#running; n++) {
      for (let k = 0; k < 5; k++) {
        const startedAt = performance.now();
        limiter.tryAcquire(`key ${(n + k) % 50}`).then(
          (decision) => this.samples.push({ startedAt, tookMs: performance.now() - startedAt, decision }),
          (error) => this.errors.push(error),
        );
      }
      await sleep(3);
    }
  }

  async #watch(): Promise<void> {
    while (this.#running) {
      const before = performance.now();
      await sleep(5);
      this.stallMs = Math.max(this.stallMs, performance.now() - before - 5);
    }
  }

  since(time: number): Sample[] {
    return this.samples.filter(({ startedAt }) => startedAt >= time);
  }

  /** Resolves once calls are answered by the store, `count` of them one after the other. */
  async healthy(count = 20): Promise<void> {
    for (;;) {
      const last = this.samples.slice(-count);
      if (last.length === count && last.every(({ decision }) => decision.degraded === undefined)) return;
      await sleep(5);
    }
  }

  async stop(): Promise<void> {
    this.#running = false;
    await this.#done;
    await sleep(DEADLINE_MS + 10);
  }
}

interface Stage {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
}

interface Outage {
  begin(stage: Stage): unknown;
  end(stage: Stage): unknown;
}

const OUTAGES: Readonly<Record<string, Outage>> = {
  "a server that is stopped (SIGSTOP)": {
    begin: ({ server }) => server.process.kill("SIGSTOP"),
    end: ({ server }) => server.process.kill("SIGCONT"),
  },
  "a server that is killed and started again": {
    begin: ({ server }) => server.kill(),
    end: ({ server }) => server.restart(),
  },
  "a network that is slow": {
    begin: ({ proxy }) => proxy.set("delay", 150),
    end: ({ proxy }) => proxy.set("forward"),
  },
  "a black hole that ends": {
    begin: ({ proxy }) => proxy.set("hold"),
    end: ({ proxy }) => proxy.set("forward"),
  },
  "a black hole that ends in broken connections": {
    begin: ({ proxy }) => proxy.set("swallow"),
    end({ proxy }) {
      proxy.set("forward");
      proxy.reset();
    },
  },
  "half-open connections": {
    begin: ({ proxy }) => proxy.set("halfOpen"),
    end: ({ proxy }) => proxy.set("forward"),
  },
  "connections refused": {
    begin: ({ proxy }) => proxy.set("refuse"),
    end: ({ proxy }) => proxy.set("forward"),
  },
  "a server out of memory": {
    begin: ({ server }) => admin(server, "CONFIG", "SET", "maxmemory", "1"),
    end: ({ server }) => admin(server, "CONFIG", "SET", "maxmemory", "0"),
  },
};

async function admin(server: RedisServer, command: string, ...args: string[]): Promise<void> {
  const client = new Redis(server.port);
  await client.call(command, ...args);
  client.disconnect();
}

async function stage(): Promise<Stage> {
  const server = await startRedis();
  cleanUp.push(() => {
    server.process.kill("SIGCONT");
    return server.stop();
  });
  const proxy = await startProxy(server.port);
  cleanUp.push(() => proxy.stop());
  return { server, proxy };
}

function ioredis(port: number): RedisClient {
  const client = new Redis({ port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => {});
  cleanUp.push(() => client.disconnect());
  return client;
}

async function nodeRedis(port: number): Promise<RedisClient> {
  const client = createClient({ socket: { port, host: "127.0.0.1", reconnectStrategy: () => 50 } });
  client.on("error", () => {});
  await client.connect();
  cleanUp.push(() => client.destroy());
  return client;
}

/** A load on one limiter, healthy to begin with. */
async function underLoad(client: RedisClient, onOutage: OutagePolicy) {
  const told: string[] = [];
  const events = { onOutage: () => told.push("outage"), onRecover: () => told.push("recover") };
  const store = resilient(redisStore(client), { onOutage, deadlineMs: DEADLINE_MS, instances: 4, events });
  const limiter = createLimiter({ store, rules: slidingLog({ limit: 1_000_000, window: "1m" }) });
  const load = new Load(limiter);
  cleanUp.push(() => load.stop());
  await load.healthy();
  return { load, told };
}

function check(load: Load, onOutage: OutagePolicy): void {
  expect(load.errors).toEqual([]);
  const times = load.samples.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  expect(times[Math.floor(times.length * 0.99)]).toBeLessThan(DEADLINE_MS + SLACK_MS + load.stallMs);
  expect(times.at(-1)).toBeLessThan(DEADLINE_MS + SLACK_MS + 2 * load.stallMs);
  for (const { decision } of load.samples) {
    expect(decision.allowed).toBe(decision.degraded === undefined || onOutage !== "closed");
    if (decision.degraded !== undefined) expect(decision.degraded).toBe(onOutage);
  }
}

describe("with load running, resilient outlives", () => {
  for (const [name, outage] of Object.entries(OUTAGES)) {
    for (const [clientName, open, onOutage] of [
      ["ioredis", ioredis, "closed"],
      ["node-redis", nodeRedis, "local"],
    ] as const) {
      it(`${name}, on ${clientName}`, { timeout: 60_000 }, async () => {
        const set = await stage();
        const { load, told } = await underLoad(await open(set.proxy.port), onOutage);
        await outage.begin(set);
        await sleep(400);
        const openedAt = performance.now();
        await sleep(200);
        // The breaker is open by now: but for a probe now and then, answers do not wait for anything.
        const opened = load.since(openedAt);
        expect(opened.length).toBeGreaterThan(5);
        expect(opened.every(({ decision }) => decision.degraded === onOutage)).toBe(true);
        const quick = opened.filter(({ tookMs }) => tookMs < 5 + load.stallMs);
        expect(quick.length / opened.length).toBeGreaterThan(0.8);

        await outage.end(set);
        const endedAt = performance.now();
        await load.healthy();
        expect(performance.now() - endedAt).toBeLessThan(1000 + 3 * load.stallMs);
        await load.stop();
        check(load, onOutage);
        expect(told.slice(0, 1)).toEqual(["outage"]);
        expect(told).toContain("recover");
      });
    }
  }

  it("the promotion of a replica", { timeout: 60_000 }, async () => {
    const set = await stage();
    const replica = await startRedis("--replicaof", "127.0.0.1", String(set.server.port));
    cleanUp.push(() => replica.stop());
    const { load } = await underLoad(ioredis(set.proxy.port), "open");
    // The old primary is gone; clients find the replica, which answers READONLY until it is promoted.
    set.proxy.target = replica.port;
    await set.server.kill();
    set.proxy.reset();
    await sleep(500);
    expect(load.samples.slice(-20).every(({ decision }) => decision.degraded === "open")).toBe(true);
    await admin(replica, "REPLICAOF", "NO", "ONE");
    const promotedAt = performance.now();
    await load.healthy();
    expect(performance.now() - promotedAt).toBeLessThan(1000 + 3 * load.stallMs);
    await load.stop();
    check(load, "open");
  });
});
