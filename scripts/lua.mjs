// @ts-check
// Assembles the Redis script out of its .lua files into a module. `--check` only tells whether it is fresh.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = join(fileURLToPath(import.meta.url), "../../packages/sluice/src/stores/redis");
/** What the general path is made of stands in one function, which a script call makes only when it needs it. */
const generalParts = [
  "slidingLogRare",
  "slidingLog",
  "slidingLogZset",
  "slidingCells",
  "fixedWindow",
  "tokenBucket",
  "concurrent",
  "leased",
  "general",
];
// A key outlives its state by a second; on an injected clock, by an hour of the server's.
// A chunk of a log is full at 28 entries of 5 bytes: less takes more memory, more takes longer to copy.
// The head of a log that has no entry, where something is held.
const preamble = `local TTL_SLACK = ARGV[1] == '' and 1000 or 3600000
local CHUNK_BYTES, NO_LOG = 140, string.rep('\\0', 62)`;

/** Comments and indentation are for readers of the .lua files; the server gets none of them. @param {string} part */
function codeOf(part) {
  return readFileSync(join(folder, "lua", `${part}.lua`), "utf8")
    .split("\n")
    .map((line) => line.replace(/(^|\s)--.*$/, "").trim())
    .filter((line) => line !== "")
    .join("\n");
}

const script = [
  preamble,
  codeOf("amend"),
  "local function general(now, rules, letters, reply)",
  ...generalParts.map(codeOf),
  "end",
  codeOf("express"),
  codeOf("hold"),
  codeOf("driver"),
].join("\n");
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
