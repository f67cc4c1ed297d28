import { Redis } from "ioredis";
import { type RedisServer, startRedis } from "./redisServer.js";

/** How many slots a cluster has. */
const SLOTS = 16_384;

/** Masters on free ports of the loopback that share all slots evenly, without replicas. */
export interface RedisCluster {
  readonly servers: readonly RedisServer[];
  readonly ports: readonly number[];
  /** A connection to each master, in the order of the ports. */
  readonly masters: readonly Redis[];
  /** Moves one slot to another master the way `redis-cli --cluster reshard` does, key by key. */
  moveSlot(slot: number, from: number, to: number, pauseMs?: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startCluster(size = 3): Promise<RedisCluster> {
  const servers = await Promise.all(
    Array.from({ length: size }, () =>
      startRedis("--cluster-enabled", "yes", "--cluster-node-timeout", "5000"),
    ),
  );
  const ports = servers.map((server) => server.port);
  const masters = ports.map((port) => new Redis(port));
  await Promise.all(
    masters.map((master, m) => {
      const [first, next] = [m, m + 1].map((n) => Math.floor((n * SLOTS) / size));
      const slots = Array.from({ length: next - first }, (_, s) => first + s);
      return master.call("CLUSTER", "ADDSLOTS", ...slots);
    }),
  );
  for (const port of ports.slice(1)) await masters[0].call("CLUSTER", "MEET", "127.0.0.1", port);
  await Promise.all(masters.map((master) => untilReady(master, size)));
  const ids = await Promise.all(masters.map((master) => master.call("CLUSTER", "MYID") as Promise<string>));

  return {
    servers,
    ports,
    masters,
    async moveSlot(slot, from, to, pauseMs = 0) {
      await masters[to].call("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]);
      await masters[from].call("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]);
      for (;;) {
        const keys = (await masters[from].call("CLUSTER", "GETKEYSINSLOT", slot, 1)) as string[];
        if (keys.length === 0) break;
        await pause(pauseMs);
        await masters[from].call("MIGRATE", "127.0.0.1", ports[to], "", 0, 5000, "KEYS", ...keys);
      }
      await pause(pauseMs);
      await masters[to].call("CLUSTER", "SETSLOT", slot, "NODE", ids[to]);
      await Promise.all(masters.map((master) => master.call("CLUSTER", "SETSLOT", slot, "NODE", ids[to])));
    },
    async stop() {
      for (const master of masters) master.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

async function untilReady(master: Redis, size: number): Promise<void> {
  for (;;) {
    const info = String(await master.call("CLUSTER", "INFO"));
    if (info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${size}`)) return;
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
