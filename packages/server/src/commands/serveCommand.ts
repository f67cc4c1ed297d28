import { Command, Option } from "commander";
import { GRPC_ADDRESS, HTTP_ADDRESS } from "../config/defaults.js";
import { address, another, milliseconds } from "./options.js";

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
    .action(async (options) => (await import("./serve.js")).serve(options));
}
