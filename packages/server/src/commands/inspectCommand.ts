import { Command, Option } from "commander";
import { another } from "./options.js";

const EXAMPLES_OF_USE = `
Examples:
  sluice inspect alice -c limits.yaml --redis redis://localhost:6379
  sluice inspect account=42,ip=10.0.0.1 -c limits.yaml -r redis://cache:6379 --limiter login
  sluice inspect remote_address=10.0.0.1 -c envoy.yaml -r redis://cache:6379 --limiter demo

It reads, and changes nothing.`;

export function inspectCommand(): Command {
  return new Command("inspect")
    .description("tell what Redis holds for a key, in words")
    .argument("<key>", "the key; part=value,part=value where keys have parts, or for a domain's descriptor")
    .option("-c, --config <path>", "limits files, or folders of them; may be told again", another)
    .addOption(new Option("-r, --redis <url>", "the Redis to look into").env("SLUICE_REDIS"))
    .option("-l, --limiter <name>", "only this limiter, or this domain of Envoy's")
    .addHelpText("after", EXAMPLES_OF_USE)
    .action(async (key, options) => (await import("./inspect.js")).inspect(key, options));
}
