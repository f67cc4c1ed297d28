import { pino } from "pino";
import type { Store } from "sluice";
import { redisStore, type ScriptRunner } from "sluice/redis";
import { EXAMPLES } from "../config/defaults.js";
import { inWords } from "../config/durations.js";
import { loadConfiguration } from "../config/load.js";
import { LiveDomain } from "../envoy/liveDomain.js";
import { LiveLimiter } from "../limits/liveLimiter.js";
import { openRedis, type RedisConnection, whenReady } from "../limits/redis.js";
import { LimiterTallies } from "../metrics.js";
import { entriesFromArgument, keyFromArgument } from "./connect.js";
import { describeStatus } from "./explain.js";

export interface InspectOptions {
  readonly config?: string[];
  readonly redis?: string;
  readonly limiter?: string;
}

/** Tells what the Redis keys of a key hold; it reads, and changes nothing. */
export async function inspect(key: string, options: InspectOptions): Promise<void> {
  const { settings, limiters, domains } = loadConfiguration(options.config ?? [EXAMPLES]);
  const url = options.redis ?? settings.redis?.url;
  if (url === undefined) throw new Error("Tell which Redis to look into: --redis redis://localhost:6379");
  const connection = openRedis({ ...settings.redis, url }, pino({ level: "silent" }));
  try {
    if (!(await whenReady(connection, 3000))) throw new Error("Redis does not answer.");
    const isWanted = (name: string) => options.limiter === undefined || options.limiter === name;
    let found = 0;
    for (const config of limiters.filter(({ name }) => isWanted(name))) {
      const { store, touched } = recording(connection, settings.redis?.prefix);
      const limiter = new LiveLimiter(config, store, new LimiterTallies());
      if (limiter.hasParts && !key.includes("=")) continue;
      const statuses = await limiter.status(keyFromArgument(limiter, key));
      const rules = [...config.rules, ...config.shadowRules];
      const lines = statuses.map((status) => {
        const words = describeStatus(
          status,
          rules.find(({ name }) => name === status.rule),
        );
        return status.shadow ? `${words} (in trial)` : words;
      });
      await tell(connection, `limiter ${config.name}`, lines, touched);
      found++;
    }
    for (const config of domains.filter(({ domain }) => isWanted(domain) && key.includes("="))) {
      const { store, touched } = recording(connection, settings.redis?.prefix);
      const domain = new LiveDomain(config, () => store, new LimiterTallies());
      const status = await domain.status(entriesFromArgument(key));
      if (status)
        await tell(
          connection,
          `domain ${config.domain}`,
          [describeStatus(status.status, status.rule)],
          touched,
        );
      else console.log(`domain ${config.domain}\n  no limit matches`);
      found++;
    }
    if (found === 0) throw new Error("Nothing in the configuration takes such a key; see --limiter.");
  } finally {
    await connection.close();
  }
}

/** A store that notes which Redis keys it looks at, so that they can be looked at as they are. */
function recording(
  { client }: RedisConnection,
  prefix: string | undefined,
): { store: Store; touched: Set<string> } {
  const touched = new Set<string>();
  const note = (count: number, rest: readonly string[]) => {
    for (const key of rest.slice(0, count)) touched.add(key);
  };
  const runner: ScriptRunner & { isCluster: boolean } = {
    isCluster: client.isCluster,
    evalsha(sha, count, ...rest) {
      note(count, rest);
      return client.evalsha(sha, count, ...rest);
    },
    eval(script, count, ...rest) {
      note(count, rest);
      return client.eval(script, count, ...rest);
    },
  };
  return { store: redisStore(runner, prefix === undefined ? {} : { prefix }), touched };
}

async function tell(
  { client }: RedisConnection,
  title: string,
  lines: readonly string[],
  keys: ReadonlySet<string>,
): Promise<void> {
  console.log(title);
  for (const line of lines) console.log(`  ${line}`);
  for (const key of keys) {
    const [type, ttl, bytes] = await Promise.all([
      client.type(key),
      client.pttl(key),
      client.memory("USAGE", key),
    ]);
    const held =
      type === "none" ? "not there" : `a ${type} of ${bytes ?? "?"} bytes, gone in ${inWords(Number(ttl))}`;
    console.log(`  in Redis: ${key}: ${held}`);
  }
}
