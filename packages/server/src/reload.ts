import type { Logger } from "pino";
import { readAccess } from "./access.js";
import type { Configuration, Settings } from "./config/configuration.js";
import { parseConfiguration, readSources } from "./config/load.js";
import { ConfigError } from "./config/problem.js";
import type { InForce } from "./http/context.js";
import { buildCatalog } from "./limits/catalog.js";
import type { Stores } from "./limits/stores.js";
import type { Metrics } from "./metrics.js";

/** What of the settings takes effect at once; the rest needs a restart. */
const RELOADED: readonly (keyof Settings)[] = ["tokens", "outage", "tiers"];

export interface ReloadParts {
  readonly paths: readonly string[];
  readonly stores: Stores;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Puts what the command line says over what the files say. */
  readonly adjust: (settings: Settings) => Settings;
}

/**
 * Reads the files again and puts all of what they say in force in one step, over the same stores, so that
 * counts live on. Files with a problem change nothing, and that is told: log, metric, /readyz.
 */
export class Reloader {
  #inForce: InForce;
  #settings: Settings;
  readonly #parts: ReloadParts;
  #texts: string | undefined;

  constructor(configuration: Configuration, parts: ReloadParts) {
    this.#parts = parts;
    this.#settings = configuration.settings;
    this.#inForce = this.#build(configuration);
    if (parts.paths.length > 0) this.#texts = JSON.stringify(readSources(parts.paths));
  }

  get inForce(): InForce {
    return this.#inForce;
  }

  /** Reloads where a file's text differs from what was read last, or where told to. */
  reload(cause: "change" | "signal"): void {
    const { paths, metrics, log } = this.#parts;
    try {
      const sources = readSources(paths);
      const texts = JSON.stringify(sources);
      if (cause === "change" && texts === this.#texts) return;
      this.#texts = texts;
      const read = parseConfiguration(sources);
      const configuration = { ...read, settings: this.#parts.adjust(read.settings) };
      this.#inForce = this.#build(configuration);
      metrics.reloads.inc({ result: "ok" });
      metrics.configValid.set(1);
      const { limiters, domains } = configuration;
      log.info({ cause, limiters: limiters.length, domains: domains.length }, "reloaded the limits");
      this.#tellUnchanged(configuration.settings);
    } catch (error) {
      const reason = error instanceof ConfigError ? error.summary : (error as Error).message;
      metrics.reloads.inc({ result: "refused" });
      metrics.configValid.set(0);
      this.#inForce = { ...this.#inForce, refusedReload: reason };
      log.error({ cause, reason }, "the new limits were refused; those before them hold");
    }
  }

  #build(configuration: Configuration): InForce {
    const { stores, metrics } = this.#parts;
    return {
      catalog: buildCatalog(configuration, stores, metrics),
      access: readAccess(configuration.settings),
    };
  }

  #tellUnchanged(settings: Settings): void {
    const names = new Set([...Object.keys(settings), ...Object.keys(this.#settings)] as (keyof Settings)[]);
    const changed = [...names].filter(
      (name) =>
        !RELOADED.includes(name) && JSON.stringify(settings[name]) !== JSON.stringify(this.#settings[name]),
    );
    if (changed.length > 0) this.#parts.log.warn({ changed }, "these settings take effect after a restart");
  }
}
