import { Command, Option } from "commander";
import { type Address, parseAddress } from "../address.js";
import type { Settings } from "../config/configuration.js";
import { EXAMPLES, GRPC_ADDRESS, HTTP_ADDRESS } from "../config/defaults.js";
import { loadConfiguration } from "../config/load.js";
import { greeting } from "../greeting.js";
import { createLog, type LogLevel } from "../log.js";
import { type RunningServer, startServer } from "../server.js";
import { address, another, milliseconds } from "./options.js";

interface ServeOptions {
  readonly config?: string[];
  readonly redis?: string;
  readonly listen?: Address;
  readonly grpc?: Address | false;
  readonly insecure?: boolean;
  readonly drain: number;
  readonly logLevel: LogLevel;
}

const EXAMPLES_OF_USE = `
Examples:
  sluice serve                                       limits to try things out on, in memory, on ${HTTP_ADDRESS}
  sluice serve -c limits.yaml                        your own limits; the file is watched and read again on SIGHUP
  sluice serve -c limits/ --redis redis://cache:6379 all files of a folder, shared by any number of servers
  SLUICE_TOKEN=… sluice serve -c limits.yaml --listen 0.0.0.0:8080 --grpc 0.0.0.0:8081

Another address than the loopback needs a token (SLUICE_TOKEN, or \`tokens:\` in the file) or --insecure.
SIGTERM answers what is under way and ends; SIGHUP reads the files again.`;

export function serveCommand(): Command {
  return new Command("serve")
    .description("answer rate limit questions over HTTP and Envoy's gRPC protocol")
    .option(
      "-c, --config <path>",
      "limits files of ours or of envoyproxy/ratelimit, or folders of them; may be told again",
      another,
    )
    .addOption(
      new Option("-r, --redis <url>", "count in this Redis rather than in memory").env("SLUICE_REDIS"),
    )
    .option("-l, --listen <address>", `where HTTP listens (default: ${HTTP_ADDRESS})`, address)
    .option("-g, --grpc <address>", `where gRPC listens (default: ${GRPC_ADDRESS})`, address)
    .option("--no-grpc", "no gRPC")
    .option("--insecure", "listen where others can reach it without asking for a token")
    .option(
      "--drain <ms>",
      "how long to take new requests after SIGTERM, while clients are asked to leave",
      milliseconds,
      250,
    )
    .addOption(
      new Option("--log-level <level>", "what is logged")
        .choices(["trace", "debug", "info", "warn", "error", "silent"])
        .default("info"),
    )
    .addHelpText("after", EXAMPLES_OF_USE)
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
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
