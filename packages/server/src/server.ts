// Everything together: configuration, store, limits in force, HTTP and gRPC; and its orderly end.
import { readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import type { FastifyInstance } from "fastify";
import type { Logger } from "pino";
import { type Address, isLoopback, writeAddress } from "./address.js";
import type { Configuration, Settings } from "./config/configuration.js";
import { watchPaths } from "./config/watch.js";
import { type GrpcServer, startGrpc } from "./grpc/server.js";
import { type AppTls, createApp } from "./http/app.js";
import type { Context } from "./http/context.js";
import { Flight } from "./limits/flight.js";
import { OpenReservations } from "./limits/reservations.js";
import { openStores } from "./limits/stores.js";
import { Metrics } from "./metrics.js";
import { Reloader } from "./reload.js";

export interface ServerOptions {
  readonly configuration: Configuration;
  /** The files that the configuration came from: they are watched, and read again on SIGHUP. */
  readonly paths?: readonly string[];
  readonly http: Address;
  /** Undefined: no gRPC. */
  readonly grpc?: Address | undefined;
  readonly log: Logger;
  /** Listen where others can reach it without asking for a token. */
  readonly insecure?: boolean;
  /** What the command line puts over the files' settings, again on each reload. */
  readonly adjust?: (settings: Settings) => Settings;
}

export interface RunningServer {
  readonly http: Address;
  readonly grpc: Address | undefined;
  readonly store: "memory" | "redis";
  /** Reads the files again now, as SIGHUP does. */
  reload(): void;
  /** Answers all that is under way, then ends. For `drainMs` more it takes new requests and asks clients to leave. */
  close(drainMs?: number): Promise<void>;
}

const MOST_RESERVATIONS = 100_000;
const MOST_IN_FLIGHT = 10_000;
/** What is still not answered after this long is cut. */
const PATIENCE_MS = 10_000;

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { configuration, http, grpc, log, paths = [] } = options;
  const { settings } = configuration;
  const metrics = new Metrics();
  const stores = openStores(settings, metrics, log);
  const adjust = options.adjust ?? ((read: Settings) => read);
  let isClosing = false;
  let unwatch = () => {};
  let app: FastifyInstance | undefined;
  let rpc: GrpcServer | undefined;
  try {
    const reloader = new Reloader(configuration, { paths, stores, metrics, log, adjust });
    refuseUnprotected(options, reloader.inForce.access.isOpen);
    const context: Context = {
      inForce: () => reloader.inForce,
      isClosing: () => isClosing,
      settings,
      stores,
      metrics,
      log,
      reservations: new OpenReservations(settings.bounds?.reservations ?? MOST_RESERVATIONS),
      flight: new Flight(settings.bounds?.inFlight ?? MOST_IN_FLIGHT),
    };
    const tls = readTls(settings);
    await stores.ready();
    app = await createApp(context, tls);
    await app.listen(http);
    rpc = grpc && (await startGrpc(context, grpc, tls));
    if (paths.length > 0) unwatch = watchPaths(paths, () => reloader.reload("change"));
    const close = async (drainMs = 0) => {
      isClosing = true;
      unwatch();
      await after(drainMs);
      await Promise.all([app?.close(), rpc?.close(PATIENCE_MS)]);
      await stores.close();
    };
    let closed: Promise<void> | undefined;
    return {
      http: boundTo(app, http),
      grpc: rpc?.address,
      store: stores.kind,
      reload: () => reloader.reload("signal"),
      close: (drainMs) => {
        closed ??= close(drainMs);
        return closed;
      },
    };
  } catch (error) {
    await Promise.allSettled([app?.close(), rpc?.close(0)]);
    await stores.close();
    throw error;
  }
}

function refuseUnprotected({ http, grpc, insecure = false }: ServerOptions, isOpen: boolean): void {
  const exposed = [http, grpc].filter(
    (address) => address !== undefined && !isLoopback(address),
  ) as Address[];
  if (!isOpen || insecure || exposed.length === 0) return;
  throw new Error(
    `${exposed.map(writeAddress).join(" and ")} can be reached by others, and no token is set. ` +
      "Set SLUICE_TOKEN or `tokens:` in the file, listen on 127.0.0.1, or say --insecure where the network itself is trusted.",
  );
}

function readTls({ tls }: Settings): AppTls | undefined {
  if (tls === undefined) return undefined;
  const { cert, key, clientCa } = tls;
  return {
    cert: readFileSync(cert),
    key: readFileSync(key),
    ...(clientCa !== undefined && { ca: readFileSync(clientCa) }),
  };
}

function boundTo(app: FastifyInstance, { host }: Address): Address {
  const bound = app.server.address();
  return { host, port: typeof bound === "object" && bound ? bound.port : 0 };
}
