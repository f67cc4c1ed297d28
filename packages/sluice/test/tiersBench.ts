// Tiers and outages, measured: run `benchTiers()` and compare only inside its report.
import { Redis } from "ioredis";
import { createLimiter, memoryStore, resilient, type Store, slidingLog, tiered } from "sluice";
import { redisStore } from "sluice/redis";
import { startRedis } from "./redisServer.js";
import { runProcesses } from "./tierProcesses.js";

export interface TiersReport {
  /** Per load, as a multiple of the limit: 8 processes on one key, with leases and without. */
  readonly shared: readonly SharedReport[];
  /** Decisions per second of one process on hot keys. */
  readonly onePerSecond: { readonly redis: number; readonly tiered: number; readonly times: number };
  readonly hung: HungReport;
}

export interface SharedReport {
  readonly load: number;
  /** With leases, and of `redisStore` alone, which puts calls together when Redis is slow to answer. */
  readonly callsPerRoundTrip: number;
  readonly aloneCallsPerRoundTrip: number;
  readonly timesFewerRoundTrips: number;
  readonly over: number;
  readonly partOfIdeal: number;
}

export interface HungReport {
  readonly deadlineMs: number;
  /** Of all decisions from the moment Redis hung. */
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Once the breaker is open, and of a memory store on the same machine. */
  readonly perSecond: number;
  readonly memoryPerSecond: number;
}

export async function benchTiers(): Promise<TiersReport> {
  const server = await startRedis();
  try {
    const shared = [await sharedLoad(server.port, 1.5), await sharedLoad(server.port, 5)];
    const onePerSecond = await oneProcess(server.port);
    const hung = await hungRedis(server);
    return { shared, onePerSecond, hung };
  } finally {
    server.process.kill("SIGCONT");
    await server.stop();
  }
}

async function sharedLoad(port: number, load: number): Promise<SharedReport> {
  const common = { port, load, processes: 8, limit: 60_000, window: 30_000 };
  const alone = await runProcesses({ ...common, leases: false, durationMs: 3000 });
  const leased = await runProcesses({ ...common, leases: true, durationMs: 40_000 });
  const callsPerRoundTrip = leased.calls / leased.roundTrips;
  const aloneCallsPerRoundTrip = alone.calls / alone.roundTrips;
  return {
    load,
    callsPerRoundTrip,
    aloneCallsPerRoundTrip,
    timesFewerRoundTrips: callsPerRoundTrip / aloneCallsPerRoundTrip,
    over: Math.max(0, leased.most - common.limit),
    partOfIdeal: leased.admitted / leased.ideal,
  };
}

async function oneProcess(port: number): Promise<TiersReport["onePerSecond"]> {
  const client = new Redis(port);
  const redis = await perSecond(redisStore(client, { prefix: "alone:" }), 3000);
  const tier = await perSecond(tiered(redisStore(client, { prefix: "tiered:" }), { leases: true }), 3000);
  client.disconnect();
  return { redis, tiered: tier, times: tier / redis };
}

/** Decisions per second on 16 hot keys, with 256 under way at a time. */
async function perSecond(store: Store, durationMs: number): Promise<number> {
  const limiter = createLimiter({ store, rules: slidingLog({ limit: 1_000_000_000, window: "10s" }) });
  const keys = Array.from({ length: 16 }, (_, n) => `user:${n}`);
  let decisions = 0;
  let end = 0;
  const loop = async (from: number) => {
    for (let n = from; ; n++) {
      await limiter.tryAcquire(keys[n % keys.length]);
      decisions++;
      // Answers that come at once never let timers or sockets have their turn.
      if (decisions % 4096 === 0) await new Promise(setImmediate);
      if (decisions % 64 === 0 && performance.now() > end) return;
    }
  };
  end = performance.now() + 500;
  await Promise.all(Array.from({ length: 256 }, (_, n) => loop(n)));
  decisions = 0;
  const start = performance.now();
  end = start + durationMs;
  await Promise.all(Array.from({ length: 256 }, (_, n) => loop(n)));
  return (decisions / (performance.now() - start)) * 1000;
}

async function hungRedis(server: { port: number; process: { kill(signal: "SIGSTOP"): unknown } }) {
  const deadlineMs = 50;
  const client = new Redis(server.port);
  client.on("error", () => {});
  const store = resilient(redisStore(client), { onOutage: "closed", deadlineMs });
  const limiter = createLimiter({ store, rules: slidingLog({ limit: 1_000_000, window: "1m" }) });
  await limiter.tryAcquire("a");
  server.process.kill("SIGSTOP");
  const times: number[] = [];
  for (const end = performance.now() + 2000; performance.now() < end; ) {
    for (let n = 0; n < 20; n++) {
      const start = performance.now();
      void limiter.tryAcquire(`user:${n}`).then(() => times.push(performance.now() - start));
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await new Promise((resolve) => setTimeout(resolve, 2 * deadlineMs));
  times.sort((a, b) => a - b);
  const open = await perSecond(store, 1500);
  client.disconnect();
  const memoryPerSecond = await perSecond(memoryStore(), 1500);
  const p99Ms = times[Math.floor(times.length * 0.99)];
  return { deadlineMs, p99Ms, maxMs: times[times.length - 1], perSecond: open, memoryPerSecond };
}
