import type { Logger } from "pino";
import type { Settings } from "../config/configuration.js";
import type { Catalog } from "../limits/catalog.js";
import type { LiveLimiter } from "../limits/liveLimiter.js";
import type { OpenReservations } from "../limits/reservations.js";
import type { Stores } from "../limits/stores.js";
import type { Metrics } from "../metrics.js";
import { HttpProblem } from "./problems.js";

/** What the endpoints work on. */
export interface Context {
  /** The limits in force at the moment of the call. */
  readonly catalog: () => Catalog;
  readonly settings: Settings;
  readonly stores: Stores;
  readonly reservations: OpenReservations;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** The limiter of that name, or a problem that lists those there are. */
export function limiterNamed(catalog: Catalog, name: string): LiveLimiter {
  const limiter = catalog.limiters.get(name);
  if (limiter) return limiter;
  const names = [...catalog.limiters.keys()];
  const some = names.slice(0, 20).join(", ") + (names.length > 20 ? ", …" : "");
  throw new HttpProblem(404, "Not Found", `There is no limiter of that name; there are: ${some || "none"}.`);
}
