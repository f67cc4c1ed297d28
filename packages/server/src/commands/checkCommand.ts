import { Command } from "commander";

export function checkCommand(): Command {
  return new Command("check")
    .description("tell everything that is wrong with limits files, with file, line and column")
    .argument("<file...>", "limits files of ours or of envoyproxy/ratelimit, or folders of them")
    .action(async (files) => (await import("./check.js")).check(files));
}
