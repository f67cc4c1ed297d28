import { readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Logger } from "pino";
import type { ScriptRunner } from "sluice/redis";
import type { Settings } from "../config/configuration.js";
import type { Metrics } from "../metrics.js";

export type RedisSettings = NonNullable<Settings["redis"]>;

export interface RedisConnection {
  readonly client: Redis | Cluster;
  ping(): Promise<void>;
  close(): Promise<void>;
}

const PATIENCE_MS = 500;

/**
 * Connects, and goes on trying while Redis is away. A command that cannot be sent at once fails at
 * once: what answers then is the outage policy, not a queue.
 */
export function openRedis(settings: RedisSettings, log: Logger): RedisConnection {
  const common = {
    maxRetriesPerRequest: 0,
    connectTimeout: 2000,
    commandTimeout: 5000,
    ...tlsOptions(settings),
  };
  const again = (times: number) => Math.min(50 * times, 500);
  const client = settings.cluster
    ? new Cluster([settings.url], {
        redisOptions: common,
        enableOfflineQueue: false,
        clusterRetryStrategy: again,
      })
    : new Redis(settings.url, { ...common, enableOfflineQueue: false, retryStrategy: again });
  let isDown = false;
  client.on("error", (error: Error) => {
    if (!isDown) log.warn({ reason: error.message }, "Redis does not answer; trying again");
    isDown = true;
  });
  client.on("ready", () => {
    if (isDown) log.info("Redis is back");
    isDown = false;
  });
  return {
    client,
    async ping() {
      await client.ping();
    },
    async close() {
      // Ended amid a TLS handshake that fails, a stream fails twice, and ioredis hears of the first alone.
      for (const { stream } of client instanceof Cluster ? client.nodes() : [client])
        stream?.on("error", () => {});
      // One that hangs would not take its leave either.
      await Promise.race([client.quit().catch(() => {}), after(PATIENCE_MS)]);
      client.disconnect();
    },
  };
}

/** Resolves once Redis is ready, or after so long without it: the server starts all the same. */
export async function whenReady({ client }: RedisConnection, patienceMs: number): Promise<boolean> {
  if (client.status === "ready") return true;
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle(false), patienceMs);
    const onReady = () => settle(true);
    const settle = (isReady: boolean) => {
      clearTimeout(timer);
      client.off("ready", onReady);
      resolve(isReady);
    };
    client.once("ready", onReady);
  });
}

function tlsOptions({ tls }: RedisSettings): Pick<RedisOptions, "tls"> {
  if (tls === undefined) return {};
  const { ca, cert, key, servername } = tls;
  return {
    tls: {
      ...(ca !== undefined && { ca: readFileSync(ca) }),
      ...(cert !== undefined && { cert: readFileSync(cert) }),
      ...(key !== undefined && { key: readFileSync(key) }),
      ...(servername !== undefined && { servername }),
    },
  };
}

/** The client as the store uses it, with every round trip counted and timed. */
export function countingTrips(
  client: Redis | Cluster,
  metrics: Metrics,
): ScriptRunner & { readonly isCluster: boolean } {
  const timed = async (trip: Promise<unknown>): Promise<unknown> => {
    const end = metrics.redisLatency.startTimer();
    try {
      const reply = await trip;
      metrics.redisTrips.inc({ result: "ok" });
      return reply;
    } catch (error) {
      metrics.redisTrips.inc({ result: "error" });
      throw error;
    } finally {
      end();
    }
  };
  return {
    isCluster: client.isCluster,
    evalsha: (sha, keys, ...rest) => timed(client.evalsha(sha, keys, ...rest)),
    eval: (script, keys, ...rest) => timed(client.eval(script, keys, ...rest)),
  };
}
