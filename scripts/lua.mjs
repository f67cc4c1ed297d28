// @ts-check
// Assembles the Redis script out of its .lua files into a module. `--check` only tells whether it is fresh.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = join(fileURLToPath(import.meta.url), "../../packages/sluice/src/stores/redis");
const parts = [
  "slidingLogRare",
  "slidingLog",
  "slidingLogZset",
  "slidingCells",
  "fixedWindow",
  "tokenBucket",
  "concurrent",
  "leased",
  "express",
  "driver",
];
// A key outlives its state by a second; on an injected clock, by an hour of the server's.
const preamble = "local TTL_SLACK = ARGV[1] == '' and 1000 or 3600000\n";

/** Comments and indentation are for readers of the .lua files; the server gets none of them. */
const code = parts
  .map((part) => readFileSync(join(folder, "lua", `${part}.lua`), "utf8"))
  .join("\n")
  .split("\n")
  .map((line) => line.replace(/(^|\s)--.*$/, "").trim())
  .filter((line) => line !== "")
  .join("\n");
const script = preamble + code;
const sha = createHash("sha1").update(script).digest("hex");
const module = `// Generated from lua/*.lua by scripts/lua.mjs; do not edit.
export const sha = "${sha}";
export const script = ${JSON.stringify(script)
  .replaceAll("`", "\\`")
  .replace(/^"/, "`")
  .replace(/"$/, "`")
  .replaceAll("\\n", "\n")
  .replaceAll('\\"', '"')};
`;

const target = join(folder, "script.ts");
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== module) {
    console.error(
      "packages/sluice/src/stores/redis/script.ts is not what its .lua files make; run `npm run fix`.",
    );
    process.exit(1);
  }
} else {
  writeFileSync(target, module);
}
