import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const example = fileURLToPath(new URL("boundary.mjs", import.meta.url));

function run(columns: number): string[] {
  const env = { ...process.env, COLUMNS: String(columns) };
  return execFileSync(process.execPath, [example], { encoding: "utf8", env }).split("\n");
}

/** The marks of an algorithm, one per request, in the order of the requests. */
function marks(lines: string[], algorithm: string): string {
  const drawn = lines.filter((line) => line.includes(algorithm) && /[●○]/.test(line));
  return drawn.join("").replaceAll(/[^●○]/g, "");
}

test("each algorithm's marks say which requests it admitted", () => {
  const lines = run(80);
  const [all, none] = ["●".repeat(10), "○".repeat(10)];
  expect(marks(lines, "fixedWindow")).toBe(all + all + none + none);
  expect(marks(lines, "slidingCounter")).toBe(`${all}${none}${"●".repeat(9)}○${none}`);
  expect(marks(lines, "slidingCells")).toBe(all + none + none + none);
  expect(marks(lines, "slidingLog")).toBe(all + none + none + all);
});

test("the most in any 60 seconds is 20, 19, 10 and 10", () => {
  const text = run(80).join("\n");
  expect(text).toMatch(/^ {2}fixedWindow +20 /m);
  expect(text).toMatch(/^ {2}slidingCounter +19 /m);
  expect(text).toMatch(/^ {2}slidingCells +10 /m);
  expect(text).toMatch(/^ {2}slidingLog +10 /m);
});

test.each([52, 60, 80, 200])("a terminal of %i columns holds every line, and every mark", (columns) => {
  const lines = run(columns);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(columns);
  expect(marks(lines, "slidingLog")).toHaveLength(40);
});

test("at 80 columns everything is told in one line each", () => {
  expect(run(80).filter((line) => line.startsWith(" ".repeat(20)) && /[a-z]/.test(line))).toEqual([]);
});

test("there are no colours where the output is not a terminal", () => {
  expect(run(80).join("")).not.toContain("\u001b");
});

test("the README shows what is drawn", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const drawn = run(80).filter((line) => /[●○┼]{5}|┼─/.test(line));
  expect(drawn).toHaveLength(5);
  for (const line of drawn) expect(readme).toContain(line.slice(2));
});
