// @ts-check
// Pages of docs/, written from the kept reports alone: the same reports always give the same files.
import { plotOf } from "./plot.mjs";
import { isMet, show, toMarkdown, verdict } from "./report.mjs";
import { kindOf, middleOf } from "./svg.mjs";

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
  const parts = [opening, provenance(reports), targetTable(reports), whereOthersLead(reports)];
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

/** @param {readonly Report[]} reports */
function whereOthersLead(reports) {
  const rows = reports.flatMap(({ title, sections }) =>
    sections.flatMap((section) => aheadOfSluice(title, section)),
  );
  if (rows.length === 0) return "";
  return [
    "## Where a peer is better",
    "Each beside the best of Sluice's rows in the same table.",
    ["| | | Sluice | less than that |", "| --- | --- | ---: | --- |", ...rows].join("\n"),
  ].join("\n\n");
}

/**
 * Which peers did better than Sluice's best row, where "less is better" makes sense.
 * @param {string} title
 * @param {Section} section
 */
function aheadOfSluice(title, section) {
  const { plot, rows, columns } = section;
  const { compare = plot?.kind === "bars" && !plot.neutral ? plot.column : undefined } = section;
  const column = columns.find(({ key }) => key === compare);
  if (column === undefined) return [];
  const value = (/** @type {import("./report.mjs").Row} */ { cells }) => middleOf(cells[column.key]);
  const best = Math.min(...rows.filter(({ label }) => kindOf(label) === "own").map(value));
  const ahead = rows.filter((row) => kindOf(row.label) === "peer" && value(row) < best);
  if (best === Infinity || ahead.length === 0) return [];
  const names = ahead.map((row) => `${row.label} ${show(value(row), column.unit)}`).join(", ");
  return [`| ${title}: ${section.title} | ${column.title} | ${show(best, column.unit)} | ${names} |`];
}
