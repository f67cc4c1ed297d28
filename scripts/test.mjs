// @ts-check
// `npm test [-- vitest arguments]`: from a bare clone to every check there is, stopping at the first failure.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, install, provideRedis } from "./setup.mjs";
import { run, step } from "./step.mjs";

install();
provideRedis();
build();
step("lock file", [process.execPath, "scripts/lock.mjs", "--check"]);
step("redis script", [process.execPath, "scripts/lua.mjs", "--check"]);
step("biome", ["biome", "check", "--error-on-warnings"]);
step("type-check", ["tsc", "--noEmit"]);
step("knip", ["knip"]);
step("publint", ["publint", "packages/sluice", "--strict"]);
step("publint server", ["publint", "packages/server", "--strict"]);
step("attw", ["attw", "--pack", "packages/sluice", "--profile", "esm-only"]);
process.exit(vitest(process.argv.slice(2)));

/**
 * Runs the tests with their output in view, then prints the totals as `N passed, N failed[, N skipped]`.
 * @param {string[]} args
 */
function vitest(args) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-test-"));
  const report = join(folder, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const { code } = run(["vitest", "run", ...reporters, ...args], "inherit");
  console.log(totals(report));
  rmSync(folder, { recursive: true });
  return code;
}

/** @param {string} report */
function totals(report) {
  /** @type {{ testResults: { status: string, assertionResults: { status: string }[] }[] }} */
  let results;
  try {
    results = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    return "0 passed, 1 failed"; // vitest ended before it could report
  }
  const count = { passed: 0, failed: 0, skipped: 0 };
  for (const file of results.testResults) {
    const failedBefore = count.failed;
    for (const { status } of file.assertionResults) {
      count[status === "passed" || status === "failed" ? status : "skipped"] += 1;
    }
    // A file that broke outside its tests (a failing import or hook) is a failure of its own.
    if (file.status === "failed" && count.failed === failedBefore) count.failed += 1;
  }
  const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
  return `${count.passed} passed, ${count.failed} failed${skipped}`;
}
