import type { Redis } from "ioredis";

export interface CommandStats {
  readonly calls: number;
  readonly usec: number;
}

/** How often each command ran since the last reset, also within scripts, and how long it took. */
export async function commandStats(redis: Redis): Promise<Readonly<Record<string, CommandStats>>> {
  const stats: Record<string, CommandStats> = {};
  for (const [, name, calls, usec] of (await redis.info("commandstats")).matchAll(
    /cmdstat_([\w|]+):calls=(\d+),usec=(\d+)/g,
  )) {
    stats[name] = { calls: Number(calls), usec: Number(usec) };
  }
  return stats;
}

/** Starts counting anew. */
export async function resetStats(redis: Redis): Promise<void> {
  await redis.config("RESETSTAT");
}
