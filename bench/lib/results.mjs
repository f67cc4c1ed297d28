// @ts-check
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const results = join(root, "bench", "results");

/**
 * Keeps a report as JSON, a line for each figure.
 * @param {import("./report.mjs").Report} report
 */
export function keep(report) {
  write(join(results, `${report.suite}.json`), `${JSON.stringify(report, rounded, 1)}\n`);
}

/**
 * Four digits that count are more than any run repeats.
 * @param {string} _key
 * @param {unknown} value
 */
function rounded(_key, value) {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}

/**
 * The kept reports among those named, in that order.
 * @param {readonly string[]} names
 * @returns {import("./report.mjs").Report[]}
 */
export function kept(names) {
  return names
    .map((name) => join(results, `${name}.json`))
    .filter((path) => existsSync(path))
    .map((path) => JSON.parse(readFileSync(path, "utf8")));
}

export function readme() {
  return readFileSync(join(root, "README.md"), "utf8");
}

/** @param {Map<string, string>} files names inside docs/ and their contents */
export function writeDocs(files) {
  for (const [name, contents] of files) write(join(root, "docs", name), contents);
}

/**
 * @param {string} path
 * @param {string} contents
 */
function write(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, contents);
}
