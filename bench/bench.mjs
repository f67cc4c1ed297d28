// @ts-check
// `npm run bench [-- memory growth ...]`: runs all suites or those named, shows their tables, keeps their
// JSON in bench/results/, and writes docs/benchmarks.md, its plots and README's table from all that is kept.
// `-- --quick` runs each for a moment and keeps nothing.

import { writePages } from "./lib/pages.mjs";
import { progressBar } from "./lib/progress.mjs";
import { isMet, show, toText, verdict } from "./lib/report.mjs";
import { keep } from "./lib/results.mjs";
import { runSuite } from "./lib/run-suite.mjs";
import { suites } from "./suites/index.mjs";

const args = process.argv.slice(2);
const quick = args.includes("--quick");
const named = args.filter((arg) => !arg.startsWith("--"));
const unknown = named.filter((name) => !(name in suites));
if (unknown.length > 0) {
  console.error(`No suite ${unknown.join(", ")}; there are ${Object.keys(suites).join(", ")}.`);
  process.exit(1);
}

const effort = quick ? { rounds: 2, roundMs: 2, scale: 0.01 } : { rounds: 15, roundMs: 40, scale: 1 };
const names = named.length > 0 ? named : Object.keys(suites);
const bar = progressBar();
const reports = [];
for (const [n, name] of names.entries()) {
  const report = await runSuite(name, effort, (share) => bar.show(name, (n + share) / names.length));
  bar.end();
  for (const section of report.sections) console.log(`\n${toText(section)}`);
  reports.push(report);
}

console.log("\nTargets");
for (const target of reports.flatMap((report) => report.targets)) {
  const { claim, wanted, bound, value, unit } = target;
  const mark = isMet(target) ? "ok  " : "SHORT";
  console.log(
    `${mark.padEnd(6)}${claim}: ${show(value, unit)}, wanted ${wanted} ${show(bound, unit)} (${verdict(target)})`,
  );
}

if (!quick) {
  for (const report of reports) keep(report);
  writePages();
  console.log("\nKept in bench/results/; written to docs/benchmarks.md and README.md");
}
