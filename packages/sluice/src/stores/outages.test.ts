// Outages for real: a server stopped, killed, promoted, full, loading or without its slots, and a network that delays,
// drops and half-opens.
import { Cluster, Redis } from "ioredis";
import { createClient, createCluster } from "redis";
import { afterEach, describe, expect, it } from "vitest";
import { Load } from "../../test/load.js";
import { type RedisServer, startRedis } from "../../test/redisServer.js";
import { startProxy, type TcpProxy } from "../../test/tcpProxy.js";
import { createLimiter } from "../limiter.js";
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

interface Stage {
  readonly server: RedisServer;
  readonly proxy: TcpProxy;
}

interface Outage {
  /** Redis-server's own. */
  readonly args?: string;
  readonly isCluster?: boolean;
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
  "a server that is loading its data (LOADING)": {
    // Every ten milliseconds it loads a key and answers who asked, for five seconds if it is let.
    args: "--enable-debug-command yes --rdbcompression no --loading-process-events-interval-bytes 1024",
    async begin({ server }) {
      await admin(server, "DEBUG", "POPULATE", "500", "load", "2048");
      await admin(server, "CONFIG", "SET", "key-load-delay", "10000");
      const reloading = admin(server, "DEBUG", "RELOAD");
      cleanUp.push(() => reloading);
      await answering(server, "LOADING");
    },
    end: ({ server }) => admin(server, "CONFIG", "SET", "key-load-delay", "0"),
  },
  "a cluster that has lost slots (CLUSTERDOWN)": {
    args: "--cluster-enabled yes --cluster-announce-ip 127.0.0.1",
    isCluster: true,
    async begin({ server }) {
      await admin(server, "CLUSTER", "DELSLOTSRANGE", "0", "99");
      await answering(server, "CLUSTERDOWN");
    },
    end: ({ server }) => admin(server, "CLUSTER", "ADDSLOTSRANGE", "0", "99"),
  },
};

/** Resolves once the server answers commands by this error. */
async function answering(server: RedisServer, error: string): Promise<void> {
  while (!(await admin(server, "GET", "a").catch(String)).includes(error)) await sleep(5);
}

async function admin(server: RedisServer, command: string, ...args: string[]): Promise<string> {
  const client = new Redis(server.port, { enableReadyCheck: false });
  try {
    return String(await client.call(command, ...args));
  } finally {
    client.disconnect();
  }
}

async function stage({ args, isCluster = false }: Partial<Outage> = {}): Promise<Stage> {
  const server = await startRedis(...(args?.split(" ") ?? []));
  cleanUp.push(() => {
    server.process.kill("SIGCONT");
    return server.stop();
  });
  if (isCluster) {
    await admin(server, "CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    while ((await admin(server, "CLUSTER", "INFO")).includes("cluster_state:fail")) await sleep(5);
  }
  const proxy = await startProxy(server.port);
  cleanUp.push(() => proxy.stop());
  return { server, proxy };
}

function ioredis({ server, proxy }: Stage, isCluster = false): RedisClient {
  const client = isCluster
    ? new Cluster([{ host: "127.0.0.1", port: server.port }])
    : new Redis({ port: proxy.port, retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on("error", () => {});
  cleanUp.push(() => client.disconnect());
  return client;
}

async function nodeRedis({ server, proxy }: Stage, isCluster = false): Promise<RedisClient> {
  const client = isCluster
    ? createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${server.port}` }] })
    : createClient({ socket: { port: proxy.port, host: "127.0.0.1", reconnectStrategy: () => 50 } });
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
  const load = new Load(limiter, DEADLINE_MS);
  cleanUp.push(() => load.stop());
  await load.healthy();
  told.length = 0; // a busy machine may have been slow to begin
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
        const set = await stage(outage);
        const { load, told } = await underLoad(await open(set, outage.isCluster), onOutage);
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
        expect(told).toEqual(["outage"]);

        await outage.end(set);
        const endedAt = performance.now();
        await load.healthy();
        expect(performance.now() - endedAt).toBeLessThan(1000 + 3 * load.stallMs);
        // Once each; a machine that is busy at that very moment may be out and back again.
        expect(told).toEqual(told.map((_, n) => (n % 2 === 0 ? "outage" : "recover")));
        expect(told.at(-1)).toBe("recover");
        await load.stop();
        check(load, onOutage);
      });
    }
  }

  it("the promotion of a replica", { timeout: 60_000 }, async () => {
    const set = await stage();
    const replica = await startRedis("--replicaof", "127.0.0.1", String(set.server.port));
    cleanUp.push(() => replica.stop());
    const { load } = await underLoad(ioredis(set), "open");
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
