// What `try` and `inspect` share: a configuration with its limits at work in this process.
import { pino } from "pino";
import type { Key } from "sluice";
import type { Configuration } from "../config/configuration.js";
import { EXAMPLES } from "../config/defaults.js";
import { loadConfiguration } from "../config/load.js";
import type { Entry } from "../envoy/messages.js";
import { buildCatalog, type Catalog } from "../limits/catalog.js";
import type { LiveLimiter } from "../limits/liveLimiter.js";
import { openStores, type Stores } from "../limits/stores.js";
import { Metrics } from "../metrics.js";

export interface Workbench {
  readonly configuration: Configuration;
  readonly catalog: Catalog;
  readonly stores: Stores;
}

/** The limits of the files, on the Redis given or in memory. */
export async function openWorkbench(
  paths: readonly string[] = [EXAMPLES],
  redis?: string,
): Promise<Workbench> {
  const read = loadConfiguration(paths);
  const settings =
    redis === undefined ? read.settings : { ...read.settings, redis: { ...read.settings.redis, url: redis } };
  const metrics = new Metrics();
  const stores = openStores(settings, metrics, pino({ level: "silent" }));
  await stores.ready();
  const configuration = { ...read, settings };
  return { configuration, catalog: buildCatalog(configuration, stores, metrics), stores };
}

/** The key that an argument stands for: `user=42,ip=10.0.0.1` for a limiter whose keys have parts. */
export function keyFromArgument(limiter: Pick<LiveLimiter, "hasParts">, text: string): Key {
  return limiter.hasParts ? Object.fromEntries(pairs(text)) : text;
}

/** `path=/login,remote_address=10.0.0.1` as the entries of a descriptor. */
export function entriesFromArgument(text: string): Entry[] {
  return pairs(text).map(([key, value]) => ({ key, value }));
}

function pairs(text: string): [string, string][] {
  return text.split(",").map((pair) => {
    const at = pair.indexOf("=");
    if (at <= 0) throw new Error(`${JSON.stringify(pair)} must be part=value; several are joined by commas.`);
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
}
