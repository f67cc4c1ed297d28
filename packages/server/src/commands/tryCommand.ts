import { Command } from "commander";
import { another, wholeNumber } from "./options.js";

const EXAMPLES_OF_USE = `
Examples:
  sluice try api alice                                       the first decision for alice under limiter "api"
  sluice try -c limits.yaml login account=42,ip=10.0.0.1     keys with parts: part=value, joined by commas
  sluice try -c limits.yaml api alice --times 101            decide again and again: where does it end?
  sluice try --server http://127.0.0.1:8080 api alice --peek ask a running server, charging nothing
  sluice try -c envoy.yaml demo path=/login remote_address=10.0.0.1
                                                             a domain of Envoy's: one argument per descriptor

Against files, counts are in memory and start empty, unless --redis says where they are.
A server that asks for a token gets SLUICE_TOKEN.`;

export function tryCommand(): Command {
  return new Command("try")
    .description("make one decision against a config or a running server, and explain it")
    .argument("<limiter>", "the name of a limiter, or of a domain of Envoy's")
    .argument("<key...>", "who asks; for a domain, its descriptors")
    .option("-c, --config <path>", "limits files, or folders of them; may be told again", another)
    .option("-r, --redis <url>", "decide on the counts of this Redis")
    .option("-s, --server <url>", "ask this server instead")
    .option("--cost <n>", "how many units to take", wholeNumber, 1)
    .option("--times <n>", "how often to decide; the last is explained", wholeNumber, 1)
    .option("--peek", "charge nothing")
    .addHelpText("after", EXAMPLES_OF_USE)
    .action(async (name, keys, options) => (await import("./try.js")).tryOnce(name, keys, options));
}
