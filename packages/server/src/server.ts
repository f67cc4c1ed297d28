// Everything together: configuration, store, limits in force, HTTP; and its orderly end.
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import type { Address } from "./address.js";
import type { Configuration } from "./config/configuration.js";
import { createApp } from "./http/app.js";
import { buildCatalog, type Catalog } from "./limits/catalog.js";
import { OpenReservations } from "./limits/reservations.js";
import { openMemory } from "./limits/stores.js";
import { Metrics } from "./metrics.js";

export interface ServerOptions {
  readonly configuration: Configuration;
  readonly http: Address;
  readonly log: Logger;
}

export interface RunningServer {
  readonly http: Address;
  close(): Promise<void>;
}

const MOST_RESERVATIONS = 100_000;

export async function startServer({ configuration, http, log }: ServerOptions): Promise<RunningServer> {
  const { settings } = configuration;
  const metrics = new Metrics();
  const stores = openMemory(settings);
  const catalog: Catalog = buildCatalog(configuration, stores, metrics);
  const reservations = new OpenReservations(settings.bounds?.reservations ?? MOST_RESERVATIONS);
  const app = await createApp({ catalog: () => catalog, settings, stores, reservations, metrics, log });
  await app.listen(http);
  return {
    http: boundTo(app, http),
    async close() {
      await app.close();
      await stores.close();
    },
  };
}

function boundTo(app: FastifyInstance, { host }: Address): Address {
  return { host, port: app.addresses()[0]?.port ?? 0 };
}
