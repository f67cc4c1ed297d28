import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { createClient, createCluster } from "redis";
import { createClient as createClient4, createCluster as createCluster4 } from "redis4";
import { createClient as createClient5, createCluster as createCluster5 } from "redis5";
import type { RedisClient, ScriptRunner } from "../src/stores/redis/index.js";

/** A client as its library makes it, and how it is closed. */
export interface OpenClient {
  readonly client: RedisClient;
  close(): unknown;
}

/** How each library connects to a server, or to a cluster by its first nodes. */
export const singleClients: Readonly<Record<string, (port: number) => Promise<OpenClient>>> = {
  "ioredis 6": async (port) => ioredis(new Redis(port)),
  "ioredis 5": async (port) => ioredis(new Redis5(port)),
  "node-redis 6": async (port) => {
    const client = createClient({ url: urlOf(port) });
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 5": async (port) => {
    const client = createClient5({ url: urlOf(port) });
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 4": async (port) => {
    const client = createClient4({ url: urlOf(port) });
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
  "{ evalsha, eval }": async (port) => {
    const redis = new Redis(port);
    const client: ScriptRunner = {
      evalsha: (sha, keyCount, ...rest) => redis.evalsha(sha, keyCount, ...rest),
      eval: (script, keyCount, ...rest) => redis.eval(script, keyCount, ...rest),
    };
    return { client, close: () => redis.disconnect() };
  },
};

export const clusterClients: Readonly<Record<string, (ports: readonly number[]) => Promise<OpenClient>>> = {
  "ioredis 6": async (ports) => ioredis(new Cluster(nodes(ports))),
  "ioredis 5": async (ports) => ioredis(new Cluster5(nodes(ports))),
  "node-redis 6": async (ports) => {
    const client = createCluster({ rootNodes: urls(ports) });
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 5": async (ports) => {
    const client = createCluster5({ rootNodes: urls(ports) });
    await client.connect();
    return { client, close: () => client.destroy() };
  },
  "node-redis 4": async (ports) => {
    const client = createCluster4({ rootNodes: urls(ports) });
    await client.connect();
    return { client, close: () => client.disconnect() };
  },
};

function ioredis<T extends RedisClient & { disconnect(): void }>(client: T): OpenClient {
  return { client, close: () => client.disconnect() };
}

function urlOf(port: number): string {
  return `redis://127.0.0.1:${port}`;
}

function urls(ports: readonly number[]): { url: string }[] {
  return ports.map((port) => ({ url: urlOf(port) }));
}

function nodes(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: "127.0.0.1", port }));
}
