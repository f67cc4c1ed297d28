// @ts-check
// What a suite measured, as plain data: the JSON that is kept, the table on the terminal and the page in
// docs/ are all made from it, so none can say what another does not.

/**
 * @typedef {import("./stats.mjs").Spread} Spread
 * @typedef {"ns" | "perSecond" | "ratio" | "bytes" | "share" | "count" | "ms" | "us" | "s" | "kB" | "text"} Unit
 * @typedef {{ key: string, title: string, unit: Unit }} Column
 * @typedef {number | string | Spread | null} Cell
 * @typedef {{ id: string, label: string, cells: Record<string, Cell> }} Row
 */

/**
 * One table, and the plot drawn from it.
 * @typedef {object} Section
 * @property {string} id
 * @property {string} title
 * @property {string} note what was done and how to read it
 * @property {Column[]} columns
 * @property {Row[]} rows
 * @property {import("./plot.mjs").Plot} [plot]
 * @property {string} [compare] the column in which less is better; that of the bars unless told
 */

/**
 * What the project asks of itself, and what came out.
 * @typedef {object} Target
 * @property {string} id
 * @property {string} claim
 * @property {"at least" | "at most"} wanted
 * @property {number} bound
 * @property {number} value
 * @property {Unit} unit
 */

/**
 * What a suite hands back, before it is dated.
 * @typedef {{ sections: Section[], targets: Target[] }} Measured
 */

/**
 * @typedef {object} Report
 * @property {string} suite
 * @property {string} title
 * @property {string} about
 * @property {string} date
 * @property {string} machine
 * @property {Record<string, string>} versions
 * @property {Section[]} sections
 * @property {Target[]} targets
 */

/** @param {Target} target */
export function isMet({ wanted, bound, value }) {
  return wanted === "at least" ? value >= bound : value <= bound;
}

/** @param {Target} target "met", or by how much it falls short */
export function verdict(target) {
  if (isMet(target)) return "met";
  if (target.bound === 0) return "falls short";
  const short = Math.abs(target.value / target.bound - 1);
  const words = target.wanted === "at least" ? "falls short" : "over";
  return `${words} by ${(short * 100).toFixed(short < 0.1 ? 1 : 0)}%`;
}

/**
 * @param {Cell | undefined} cell
 * @param {Unit} unit
 * @param {boolean} [withSpread]
 */
export function show(cell, unit, withSpread = false) {
  if (cell === null || cell === undefined) return "–";
  if (typeof cell === "string") return cell;
  if (typeof cell === "number") return showNumber(cell, unit);
  const middle = showNumber(cell.median, unit);
  if (!withSpread) return middle;
  const [low, high] = [showNumber(cell.low, unit), showNumber(cell.high, unit)];
  const suffix = unit === "perSecond" ? "" : (/[^\d.,]*$/.exec(middle)?.[0] ?? "");
  return `${middle} (${low.slice(0, low.length - suffix.length)} to ${high.slice(0, high.length - suffix.length)})`;
}

/** The next larger unit, and how many make one of it. @type {Partial<Record<Unit, [Unit, number]>>} */
const LARGER = { ns: ["us", 1_000], us: ["ms", 1_000], ms: ["s", 1_000], bytes: ["kB", 1_000] };

/**
 * A number in the unit that it reads best in, for plots; a table keeps to one unit.
 * @param {number} value
 * @param {Unit} unit
 * @returns {string}
 */
export function inUnit(value, unit) {
  const [next, times] = LARGER[unit] ?? [unit, Infinity];
  if (Math.abs(value) >= times) return inUnit(value / times, next);
  return showNumber(value, unit);
}

/**
 * @param {number} value
 * @param {Unit} unit
 */
function showNumber(value, unit) {
  switch (unit) {
    case "perSecond":
      return compact(value);
    case "ratio":
      return `${significant(value)}x`;
    case "share":
      return `${significant(value * 100)}%`;
    case "us":
      return `${significant(value)} µs`;
    case "ns":
    case "ms":
    case "s":
    case "kB":
      return `${significant(value)} ${unit}`;
    case "bytes":
      return `${significant(value)} B`;
    default:
      return significant(value);
  }
}

/** @param {number} value three digits that count */
function significant(value) {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return Number(value.toPrecision(3)).toString();
}

/** @param {number} value */
function compact(value) {
  if (value >= 1e6) return `${significant(value / 1e6)} M`;
  if (value >= 1e3) return `${significant(value / 1e3)} k`;
  return significant(value);
}

/**
 * A section as lines of text with aligned columns.
 * @param {Section} section
 */
export function toText({ title, columns, rows }) {
  const cells = [
    ["", ...columns.map((column) => column.title)],
    ...rows.map((row) => [row.label, ...columns.map(({ key, unit }) => show(row.cells[key], unit, true))]),
  ];
  const widths = (cells[0] ?? []).map((_, c) => Math.max(...cells.map((line) => (line[c] ?? "").length)));
  const lines = cells.map((line) =>
    line.map((cell, c) => (c === 0 ? cell.padEnd(widths[c] ?? 0) : cell.padStart(widths[c] ?? 0))).join("  "),
  );
  return [title, ...lines].join("\n");
}

/**
 * A section as a table of Markdown.
 * @param {Section} section
 */
export function toMarkdown({ columns, rows }) {
  const lines = [
    ["", ...columns.map((column) => column.title)],
    ["---", ...columns.map(({ unit }) => (unit === "text" ? "---" : "---:"))],
    ...rows.map((row) => [row.label, ...columns.map(({ key, unit }) => show(row.cells[key], unit, true))]),
  ];
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}
