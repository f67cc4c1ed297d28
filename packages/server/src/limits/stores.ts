import type { Logger } from "pino";
import { memoryStore, resilient, type Store, tiered } from "sluice";
import { redisStore } from "sluice/redis";
import type { Outage, Settings, Tiers } from "../config/configuration.js";
import type { StoreWithin } from "../envoy/liveDomain.js";
import type { Metrics } from "../metrics.js";
import { countingTrips, openRedis, type RedisConnection, type RedisSettings, whenReady } from "./redis.js";

/** The one place where counts are kept, seen through the outage policies and tiers that limiters ask for. */
export interface Stores {
  readonly kind: "memory" | "redis";
  under(outage: Outage, tiers?: Tiers): Store;
  /** The same for callers whose patience differs from call to call. */
  within(outage: Outage): StoreWithin;
  /** Resolves once the store is there, or after a second without it: policies answer until it is. */
  ready(): Promise<void>;
  /** Resolves when the store answers, rejects with the reason when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export function openStores(settings: Settings, metrics: Metrics, log: Logger): Stores {
  return settings.redis ? redisStores(settings.redis, metrics, log) : memoryStores(settings);
}

function memoryStores({ memory }: Settings): Stores {
  const store = memoryStore(memory?.maxKeys === undefined ? {} : { maxKeys: memory.maxKeys });
  return {
    kind: "memory",
    under: () => store,
    within: () => () => store,
    ready: async () => {},
    ping: async () => {},
    close: async () => store.close(),
  };
}

/** How long a store may take for callers of a deadline: the steps that stores are made for. */
const STEPS_MS = [1, 2, 5, 10, 15, 20, 30, 50, 100, 250, 1000];
/** What it takes to hand the answer over. */
const MARGIN_MS = 4;
const READY_MS = 1000;

function redisStores(settings: RedisSettings, metrics: Metrics, log: Logger): Stores {
  const connection: RedisConnection = openRedis(settings, log);
  const base = redisStore(
    countingTrips(connection.client, metrics),
    settings.prefix === undefined ? {} : { prefix: settings.prefix },
  );
  const events = {
    onOutage({ error }: { readonly error: Error }) {
      metrics.outages.inc();
      metrics.storeUp.set(0);
      log.error({ reason: error.message }, "the store is out; policies answer");
    },
    onRecover({ outageMs }: { readonly outageMs: number }) {
      metrics.storeUp.set(1);
      log.info({ outageMs }, "the store answers again");
    },
  };
  const local = memoryStore();
  const levels = new Map<string, Store>();
  const made = new Map<string, Store>();
  const levelled = (tiers: Tiers | undefined) =>
    tiers === undefined ? base : once(levels, JSON.stringify(tiers), () => tiered(base, tiers));
  const under = ({ policy, deadlineMs, instances }: Outage, tiers?: Tiers) =>
    once(made, JSON.stringify([policy, deadlineMs, instances, tiers]), () =>
      resilient(levelled(tiers), { onOutage: policy, deadlineMs, instances, local, events }),
    );
  return {
    kind: "redis",
    under,
    within: (outage) => (ms) => {
      const deadlineMs = STEPS_MS.findLast((step) => step <= ms - MARGIN_MS) ?? 1;
      return under(deadlineMs < outage.deadlineMs ? { ...outage, deadlineMs } : outage);
    },
    async ready() {
      if (!(await whenReady(connection, READY_MS))) {
        metrics.storeUp.set(0);
        log.error("Redis is not there; policies answer until it is");
      }
    },
    ping: connection.ping,
    close: connection.close,
  };
}

function once<T>(known: Map<string, T>, name: string, make: () => T): T {
  let value = known.get(name);
  if (value === undefined) {
    value = make();
    known.set(name, value);
  }
  return value;
}
