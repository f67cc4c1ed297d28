import type { Configuration } from "../config/configuration.js";
import { LiveDomain } from "../envoy/liveDomain.js";
import type { Metrics } from "../metrics.js";
import { LiveLimiter } from "./liveLimiter.js";
import type { Stores } from "./stores.js";

/** All limits in force. A reload makes a new one over the same stores, and puts it in this one's place. */
export interface Catalog {
  readonly limiters: ReadonlyMap<string, LiveLimiter>;
  readonly domains: ReadonlyMap<string, LiveDomain>;
}

export function buildCatalog(
  { limiters, domains }: Configuration,
  stores: Stores,
  metrics: Metrics,
): Catalog {
  return {
    limiters: new Map(
      limiters.map((config) => [
        config.name,
        new LiveLimiter(config, stores.under(config.outage, config.tiers), metrics.limiter(config.name)),
      ]),
    ),
    domains: new Map(
      domains.map((config) => [
        config.domain,
        new LiveDomain(config, stores.within(config.outage), metrics.limiter(config.domain)),
      ]),
    ),
  };
}
