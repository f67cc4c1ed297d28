#!/usr/bin/env node
import { Command } from "commander";
import { checkCommand } from "./commands/check.js";
import { serveCommand } from "./commands/serve.js";
import { ConfigError } from "./config/problem.js";

const program = new Command("sluice")
  .description("Exact rate limits for whatever speaks HTTP or Envoy's protocol.")
  .addCommand(serveCommand())
  .addCommand(checkCommand());

try {
  await program.parseAsync();
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : `sluice: ${(error as Error).message}`);
  process.exit(1);
}
