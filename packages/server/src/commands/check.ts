import { Command } from "commander";
import { loadConfiguration } from "../config/load.js";

export function checkCommand(): Command {
  return new Command("check")
    .description("tell everything that is wrong with limits files, with file, line and column")
    .argument("<file...>", "limits files of ours or of envoyproxy/ratelimit, or folders of them")
    .action((files: string[]) => {
      const { limiters, domains } = loadConfiguration(files);
      const parts = [
        ...(limiters.length > 0 ? [`limiters ${limiters.map(({ name }) => name).join(", ")}`] : []),
        ...(domains.length > 0 ? [`domains ${domains.map(({ domain }) => domain).join(", ")}`] : []),
      ];
      console.log(`ok: ${parts.join("; ") || "no limits"}`);
    });
}
