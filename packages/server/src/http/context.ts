import type { Logger } from "pino";
import type { Key } from "sluice";
import type { Access } from "../access.js";
import type { Settings } from "../config/configuration.js";
import type { Catalog } from "../limits/catalog.js";
import type { Flight } from "../limits/flight.js";
import type { LiveLimiter } from "../limits/liveLimiter.js";
import type { OpenReservations } from "../limits/reservations.js";
import type { Stores } from "../limits/stores.js";
import type { Metrics } from "../metrics.js";
import { HttpProblem } from "./problems.js";

/** What is in force now, and how it came to be: a reload replaces it as a whole. */
export interface InForce {
  readonly catalog: Catalog;
  readonly access: Access;
  /** Why the files on disk are not what is in force, where they are not. */
  readonly refusedReload?: string;
}

/** What the endpoints work on. */
export interface Context {
  readonly inForce: () => InForce;
  readonly settings: Settings;
  readonly stores: Stores;
  readonly reservations: OpenReservations;
  readonly flight: Flight;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Whether the server is on its way out: it still answers, and asks to be left. */
  readonly isClosing: () => boolean;
}

/** The limiter of that name, or a problem that lists those there are. */
export function limiterNamed(catalog: Catalog, name: string): LiveLimiter {
  const limiter = catalog.limiters.get(name);
  if (limiter) return limiter;
  const names = [...catalog.limiters.keys()];
  const some = names.slice(0, 20).join(", ") + (names.length > 20 ? ", …" : "");
  throw new HttpProblem(404, "Not Found", `There is no limiter of that name; there are: ${some || "none"}.`);
}

/** The key out of a URL: the text itself, or JSON for limiters whose keys have parts. */
export function keyFromPath(limiter: LiveLimiter, text: string): Key {
  if (!limiter.hasParts) return text;
  try {
    const key: unknown = JSON.parse(text);
    if (typeof key === "object" && key !== null && !Array.isArray(key)) return key as Key;
  } catch {}
  throw new HttpProblem(
    400,
    "Bad Request",
    `Keys of this limiter have parts; give them as percent-encoded JSON, such as {"user":"42"}.`,
  );
}

/** Refuses where so many decisions wait for the store already that one more would only wait longer. */
export function refuseOverload({ flight, metrics }: Context, more = 1): void {
  if (flight.hasRoom(more)) return;
  metrics.rejected.inc({ reason: "overload" });
  throw new HttpProblem(
    503,
    "Temporary reduced capacity",
    "Too many decisions wait for the store; try again.",
  );
}
