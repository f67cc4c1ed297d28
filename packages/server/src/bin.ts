#!/usr/bin/env node
import { createRequire } from "node:module";
import { Command } from "commander";
import { checkCommand } from "./commands/checkCommand.js";
import { inspectCommand } from "./commands/inspectCommand.js";
import { serveCommand } from "./commands/serveCommand.js";
import { tryCommand } from "./commands/tryCommand.js";
import { ConfigError } from "./config/problem.js";

const HELP = `
Start here:
  sluice serve                              limits to try things out on, on 127.0.0.1:8080
  curl -s http://127.0.0.1:8080/v1/limiters/api/acquire -H 'content-type: application/json' -d '{"key":"you"}'

Your own limits, in limits.yaml:
  limiters:
    api:
      rules:
        - { limit: 100, window: 1m }        100 in any minute, exactly; all rules must allow
        - { limit: 1000, window: 1h }
      key: "{header:x-api-key}"             for proxies that ask at /v1/guard/api

  sluice check limits.yaml                  what is wrong with it, with line and column
  sluice try -c limits.yaml api alice       one decision, explained
  sluice serve -c limits.yaml --redis redis://localhost:6379

Exit codes: 0 fine or allowed, 1 an error, 2 denied (try).`;

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };

const program = new Command("sluice")
  .description("Exact rate limits for whatever speaks HTTP or Envoy's protocol.")
  .version(version)
  .addCommand(serveCommand())
  .addCommand(checkCommand())
  .addCommand(tryCommand())
  .addCommand(inspectCommand())
  .addHelpText("after", HELP);

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : `sluice: ${(error as Error).message}`);
  process.exit(1);
}
