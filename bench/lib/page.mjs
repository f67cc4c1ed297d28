// @ts-check
// Pages of docs/, written from the kept reports alone: the same reports always give the same files.
import { plotOf } from "./plot.mjs";
import { isMet, show, toMarkdown, verdict } from "./report.mjs";

/**
 * @typedef {import("./report.mjs").Report} Report
 * @typedef {import("./report.mjs").Section} Section
 */

/**
 * @param {object} page
 * @param {string} page.name of the file, such as "benchmarks"
 * @param {string} page.opening everything above the first report
 * @param {string} [page.closing] everything below the last
 * @param {readonly Report[]} reports
 * @returns {Map<string, string>} file names inside docs/, and their contents
 */
export function filesOf({ name, opening, closing = "" }, reports) {
  const files = new Map();
  const parts = [opening, provenance(reports), targetTable(reports)];
  for (const report of reports) {
    parts.push(`## ${report.title}`, report.about);
    for (const section of report.sections) {
      parts.push(`### ${section.title}`, section.note);
      const plot = plotOf(section);
      if (plot !== undefined) {
        const file = `${name}/${section.id}.svg`;
        files.set(file, plot);
        parts.push(`![${section.plot?.caption}](${file})`);
      }
      parts.push(toMarkdown(section));
      const ahead = whereOthersLead(section);
      if (ahead !== "") parts.push(ahead);
    }
  }
  parts.push(closing);
  files.set(`${name}.md`, `${parts.filter((part) => part !== "").join("\n\n")}\n`);
  return files;
}

/** @param {readonly Report[]} reports */
function provenance(reports) {
  const dates = [...new Set(reports.map((report) => report.date))].sort();
  const machines = [...new Set(reports.map((report) => report.machine))];
  const versions = Object.entries(Object.assign({}, ...reports.map((report) => report.versions)))
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");
  return `Measured ${dates.join(" and ")} on ${machines.join("; ")}. Versions: ${versions}.`;
}

/** @param {readonly Report[]} reports */
function targetTable(reports) {
  const targets = reports.flatMap((report) => report.targets);
  if (targets.length === 0) return "";
  const rows = targets.map((target) => {
    const { claim, wanted, bound, value, unit } = target;
    const judgement = isMet(target) ? "met" : `**${verdict(target)}**`;
    return `| ${claim} | ${wanted} ${show(bound, unit)} | ${show(value, unit)} | ${judgement} |`;
  });
  const met = targets.filter(isMet).length;
  return [
    "## What the project asks of itself",
    `${met} of ${targets.length} met in this run.`,
    ["| | wanted | measured | |", "| --- | ---: | ---: | --- |", ...rows].join("\n"),
  ].join("\n\n");
}

/**
 * Says which peers did better than Sluice's best row, where "shorter is better" makes sense.
 * @param {Section} section
 */
function whereOthersLead({ plot, rows, columns }) {
  if (plot?.kind !== "bars" || plot.neutral) return "";
  const { column } = plot;
  const unit = columns.find(({ key }) => key === column)?.unit ?? "count";
  const value = (/** @type {import("./report.mjs").Row} */ { cells }) => {
    const cell = cells[column];
    return typeof cell === "object" && cell !== null ? cell.median : Number(cell);
  };
  const own = rows.filter((row) => row.label.startsWith("Sluice"));
  const best = Math.min(...own.map(value));
  const ahead = rows.filter(
    (row) => !own.includes(row) && !row.label.startsWith("floor") && value(row) < best,
  );
  if (own.length === 0 || ahead.length === 0) return "";
  const names = ahead.map((row) => `${row.label} (${show(value(row), unit)})`).join(", ");
  return `Ahead of Sluice here: ${names}.`;
}
