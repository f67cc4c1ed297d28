// The generated files of schema/: what editors check limits files by, and what clients of the API are made from.
import { pino } from "pino";
import { Access } from "./access.js";
import { editorSchemas } from "./config/editorSchema.js";
import { createApp } from "./http/app.js";
import { Flight } from "./limits/flight.js";
import { OpenReservations } from "./limits/reservations.js";
import { openStores } from "./limits/stores.js";
import { Metrics } from "./metrics.js";

export async function schemaFiles(): Promise<Record<string, string>> {
  const log = pino({ level: "silent" });
  const metrics = new Metrics();
  const app = await createApp({
    inForce: () => ({ catalog: { limiters: new Map(), domains: new Map() }, access: new Access([]) }),
    isClosing: () => false,
    settings: {},
    stores: openStores({}, metrics, log),
    reservations: new OpenReservations(1),
    flight: new Flight(1),
    metrics,
    log,
  });
  await app.ready();
  const files = { ...editorSchemas(), "openapi.json": app.swagger() };
  await app.close();
  return Object.fromEntries(
    Object.entries(files).map(([name, file]) => [name, `${JSON.stringify(file, null, 2)}\n`]),
  );
}
