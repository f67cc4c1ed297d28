import { Command } from "commander";
import { parseAddress } from "../address.js";
import { EXAMPLES, HTTP_ADDRESS } from "../config/defaults.js";
import { loadConfiguration } from "../config/load.js";
import { greeting } from "../greeting.js";
import { createLog } from "../log.js";
import { startServer } from "../server.js";

interface ServeOptions {
  readonly config?: string[];
  readonly listen?: string;
}

export function serveCommand(): Command {
  return new Command("serve")
    .description("answer rate limit questions over HTTP and Envoy's gRPC protocol")
    .option(
      "-c, --config <file...>",
      "limits files, or folders of them; without, limits to try things out on",
    )
    .option("-l, --listen <address>", `where HTTP listens (default ${HTTP_ADDRESS})`)
    .action(serve);
}

async function serve(options: ServeOptions): Promise<void> {
  const configuration = loadConfiguration(options.config ?? [EXAMPLES]);
  const http = parseAddress(options.listen ?? configuration.settings.listen?.http ?? HTTP_ADDRESS);
  if (!http) throw new Error("--listen must be host:port");
  const server = await startServer({ configuration, http, log: createLog("info") });
  console.log(greeting(server.http, "memory"));
  const stop = () => void server.close().then(() => process.exit(0));
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}
