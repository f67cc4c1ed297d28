import { type Address, parseAddress } from "../address.js";
import type { Settings } from "../config/configuration.js";
import { EXAMPLES, GRPC_ADDRESS, HTTP_ADDRESS } from "../config/defaults.js";
import { loadConfiguration } from "../config/load.js";
import { greeting } from "../greeting.js";
import { createLog, type LogLevel } from "../log.js";
import { type RunningServer, startServer } from "../server.js";

export interface ServeOptions {
  readonly config?: string[];
  readonly redis?: string;
  readonly listen?: Address;
  readonly grpc?: Address | false;
  readonly insecure?: boolean;
  readonly drain: number;
  readonly logLevel: LogLevel;
}

/** Runs until it is told to end. */
export async function serve(options: ServeOptions): Promise<void> {
  const paths = options.config ?? [EXAMPLES];
  const read = loadConfiguration(paths);
  const adjust = (settings: Settings): Settings =>
    options.redis === undefined
      ? settings
      : { ...settings, redis: { ...settings.redis, url: options.redis } };
  const settings = adjust(read.settings);
  const log = createLog(options.logLevel);
  const server = await startServer({
    configuration: { ...read, settings },
    paths,
    adjust,
    log,
    http: options.listen ?? addressOf(settings.listen?.http ?? HTTP_ADDRESS),
    grpc: grpcOf(options.grpc, settings),
    insecure: options.insecure === true,
  });
  untilTold(server, options.drain);
  log.info(
    { http: server.http, grpc: server.grpc, store: server.store },
    options.config ? "listening" : "listening, with limits to try things out on",
  );
  if (options.config === undefined) console.log(greeting(server));
}

function untilTold(server: RunningServer, drainMs: number): void {
  const stop = () => void server.close(drainMs).then(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  process.on("SIGHUP", () => server.reload());
}

function grpcOf(option: Address | false | undefined, { listen }: Settings): Address | undefined {
  if (option === false || (option === undefined && listen?.grpc === false)) return undefined;
  return option || addressOf(listen?.grpc || GRPC_ADDRESS);
}

function addressOf(text: string): Address {
  const parsed = parseAddress(text);
  if (parsed) return parsed;
  throw new Error(`${text} is no address with a port, such as 127.0.0.1:8080 or [::1]:8080.`);
}
