// @ts-check
// `npm run accuracy`: plays all traffic to all limiters, shows the tables, keeps the JSON in bench/results/,
// and writes docs/accuracy.md, its plots and README's table. `-- --quick` takes a shorter look and keeps nothing.
import { runLab } from "./accuracy/lab.mjs";
import { machineClass, versions } from "./lib/machine.mjs";
import { accuracyPage, writePages } from "./lib/pages.mjs";
import { progressBar } from "./lib/progress.mjs";
import { toText } from "./lib/report.mjs";
import { keep } from "./lib/results.mjs";

const quick = process.argv.includes("--quick");
const bar = progressBar();
const { sections, targets } = await runLab({
  scale: quick ? 0.05 : 1,
  onProgress: (share, label) => bar.show(label, share),
});
bar.end();
for (const section of sections) console.log(`\n${toText(section)}`);
if (!quick) {
  const date = new Date().toISOString().slice(0, 10);
  keep({
    suite: "accuracy",
    ...accuracyPage,
    date,
    machine: machineClass(),
    versions: versions(),
    sections,
    targets,
  });
  writePages();
  console.log("\nKept in bench/results/accuracy.json; written to docs/accuracy.md and README.md");
}
