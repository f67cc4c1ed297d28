// @ts-check
// README's table and plot, taken from the kept reports: the part of README between two marks, and one SVG.
import { plotOf } from "./plot.mjs";
import { toMarkdown } from "./report.mjs";
import { middleOf } from "./svg.mjs";

/**
 * @typedef {import("./report.mjs").Column} Column
 * @typedef {import("./report.mjs").Report} Report
 * @typedef {import("./report.mjs").Row} Row
 * @typedef {import("./report.mjs").Section} Section
 */

const BEGIN = "<!-- measured: written by `npm run accuracy` and `npm run bench` -->";
const END = "<!-- /measured -->";

/** Who is shown, and its row in the sections that figures are taken from. */
const shown = [
  { label: "Sluice `slidingLog`", lab: "slidingLog", memory: "sluice-sync", redis: "sluice-log" },
  { label: "sorted set (recipes for Redis)", lab: "notes-sorted-set", redis: "notes-sorted-set" },
  { label: "@nestjs/throttler by default", lab: "@nestjs/throttler", memory: "nestjs-throttler" },
  { label: "limiter", lab: "limiter", memory: "limiter" },
  {
    label: "rate-limiter-flexible",
    lab: "rate-limiter-flexible",
    memory: "rate-limiter-flexible",
    redis: "rate-limiter-flexible",
  },
  {
    label: "express-rate-limit",
    lab: "express-rate-limit",
    memory: "express-rate-limit",
    redis: "rate-limit-redis",
  },
  {
    label: "@fastify/rate-limit",
    lab: "fastify-rate-limit",
    memory: "fastify-rate-limit",
    redis: "fastify-rate-limit",
  },
  { label: "@upstash/ratelimit slidingWindow", lab: "upstash slidingWindow", redis: "upstash" },
];

/** @type {(Column & { from: "lab" | "memory" | "redis", section: string, cell: string, cost?: string })[]} */
const columns = [
  {
    key: "most",
    title: "most in any minute",
    unit: "share",
    from: "lab",
    section: "accuracy-summary",
    cell: "most",
  },
  {
    key: "refused",
    title: "wrongly refused",
    unit: "share",
    from: "lab",
    section: "accuracy-summary",
    cell: "refused",
  },
  {
    key: "cpu",
    title: "CPU, in memory",
    unit: "ns",
    from: "memory",
    section: "memory-mix",
    cell: "cpu",
    cost: "in memory",
  },
  {
    key: "redis",
    title: "CPU of Redis",
    unit: "us",
    from: "redis",
    section: "redis-many",
    cell: "redis",
    cost: "in CPU of Redis",
  },
  {
    key: "bytes",
    title: "bytes in Redis",
    unit: "bytes",
    from: "redis",
    section: "redis-bytes",
    cell: "perKey",
    cost: "in bytes",
  },
];

/**
 * @param {readonly Report[]} reports
 * @returns {Section}
 */
function measured(reports) {
  const sections = new Map(
    reports.flatMap((report) => report.sections).map((section) => [section.id, section]),
  );
  const rows = shown.map((who) => ({
    id: who.lab,
    label: who.label,
    cells: Object.fromEntries(
      columns.map(({ key, from, section, cell }) => {
        if (who[from] === undefined) return [key, null];
        const row = sections.get(section)?.rows.find(({ id }) => id === who[from]);
        if (row === undefined)
          throw new Error(`README shows ${section}: ${who[from]}, which nothing measured`);
        return [key, middleOf(row.cells[cell])];
      }),
    ),
  }));
  return {
    id: "measured",
    title: "100 per minute; the worst over all traffic of the accuracy lab, adversaries included",
    note: "",
    columns: columns.map(({ key, title, unit }) => ({ key, title, unit })),
    rows,
    plot: {
      kind: "bars",
      column: "most",
      caption: "The most admitted in any minute, of the limit",
      scale: "linear",
      mark: { at: 1, text: "limit" },
      neutral: true,
    },
  };
}

/**
 * Which peers cost less than the exact log, by each measure of cost.
 * @param {Section} section
 */
function cheaper({ rows: [own, ...peers] }) {
  const found = columns.flatMap(({ key, cost }) => {
    const less = peers.filter(
      ({ cells }) => cells[key] !== null && Number(cells[key]) < Number(own?.cells[key]),
    );
    return cost === undefined || less.length === 0
      ? []
      : [`${cost}: ${less.map(({ label }) => label).join(", ")}`];
  });
  return found.length === 0 ? "" : `\nCheaper than \`slidingLog\` ${found.join("; ")}.\n`;
}

/**
 * @param {readonly Report[]} reports
 * @param {string} readme as it stands
 * @returns {Map<string, string>} file names inside docs/, and their contents
 */
export function readmeFiles(reports, readme) {
  const section = measured(reports);
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`README.md must have the lines ${BEGIN} and ${END}`);
  const written = `${BEGIN}\n${toMarkdown(section)}\n${cheaper(section)}`;
  return new Map([
    ["../README.md", readme.slice(0, begin) + written + readme.slice(end)],
    ["measured.svg", /** @type {string} */ (plotOf(section))],
  ]);
}
