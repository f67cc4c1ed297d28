// @ts-check
// Plots as SVG, drawn from a section's own table. They follow the reader's light or dark scheme.
import { show } from "./report.mjs";

/**
 * @typedef {import("./report.mjs").Section} Section
 * @typedef {{ kind: "bars", column: string, caption: string, scale: "linear" | "log", mark?: { at: number, text: string }, neutral?: boolean }} Bars `neutral`: shorter is not simply better
 * @typedef {{ kind: "lines", caption: string, only?: string[], linearX?: boolean, linearY?: boolean, mark?: { at: number, text: string } }} Lines
 * @typedef {Bars | Lines} Plot
 */

const STYLE = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .caption { font-weight: 600 } .muted { fill: #59636e } .end { text-anchor: end } .middle { text-anchor: middle }
  .grid { stroke: #d1d9e0; fill: none } .mark { stroke: #cf222e; stroke-dasharray: 5 4; fill: none } .marktext { fill: #cf222e }
  .own { fill: #0969da } .peer { fill: #818b98 } .floor { fill: #c8d1da }
  .line { fill: none; stroke-width: 2 } .c0 { stroke: #0969da; stroke-width: 3 } .c1 { stroke: #bc4c00 }
  .c2 { stroke: #1a7f37 } .c3 { stroke: #8250df } .c4 { stroke: #bf3989 } .c5 { stroke: #9a6700 } .c6 { stroke: #818b98 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .muted { fill: #9198a1 } .grid { stroke: #3d444d } .mark { stroke: #f85149 } .marktext { fill: #f85149 }
    .own { fill: #4493f8 } .peer { fill: #818b98 } .floor { fill: #3d444d }
    .c0 { stroke: #4493f8 } .c1 { stroke: #f0883e } .c2 { stroke: #3fb950 } .c3 { stroke: #ab7df8 } .c4 { stroke: #db61a2 } .c5 { stroke: #d29922 }
  }`;

const WIDTH = 760;

/**
 * @param {Section} section
 * @returns {string | undefined} undefined where the section has no plot
 */
export function plotOf(section) {
  if (section.plot === undefined) return undefined;
  return section.plot.kind === "bars" ? bars(section, section.plot) : lines(section, section.plot);
}

/**
 * @param {Section} section
 * @param {Bars} plot
 */
function bars(section, { column, caption, scale, mark }) {
  const unit = section.columns.find(({ key }) => key === column)?.unit ?? "count";
  const rows = section.rows
    .map(({ label, cells }) => ({ label, cell: cells[column], value: middle(cells[column]) }))
    .filter((row) => Number.isFinite(row.value));
  const left = 350;
  const room = WIDTH - left - 90;
  const most = Math.max(...rows.map((row) => row.value), mark?.at ?? 0);
  const least = Math.min(...rows.map((row) => row.value).filter((value) => value > 0));
  const length = (/** @type {number} */ value) =>
    value > 0 && scale === "log"
      ? 20 + ((room - 20) * Math.log(value / least)) / Math.max(Math.log(most / least), 1e-9)
      : (room * value) / most;
  const height = 60 + rows.length * 26;
  const body = rows.map(({ label, cell, value }, n) => {
    const y = 44 + n * 26;
    const kind = label.startsWith("Sluice") ? "own" : label.startsWith("floor") ? "floor" : "peer";
    return [
      `<text class="end" x="${left - 10}" y="${y + 14}">${escapeXml(label)}</text>`,
      `<rect class="${kind}" x="${left}" y="${y}" width="${length(value).toFixed(1)}" height="18" rx="3"/>`,
      `<text class="muted" x="${(left + length(value) + 8).toFixed(1)}" y="${y + 14}">${show(cell, unit)}</text>`,
    ].join("");
  });
  if (mark !== undefined) {
    const x = (left + length(mark.at)).toFixed(1);
    body.push(`<path class="mark" d="M${x} 36V${height - 8}"/>`);
    body.push(`<text class="marktext middle" x="${x}" y="${32}">${escapeXml(mark.text)}</text>`);
  }
  return svg(height, `${caption}${scale === "log" ? "; logarithmic scale" : ""}`, body);
}

/**
 * One line per row, over the columns, whose keys are numbers. Scales are logarithmic unless told.
 * @param {Section} section
 * @param {Lines} plot
 */
function lines(section, { caption, only, linearX = false, linearY = false, mark }) {
  const xs = section.columns.map(({ key }) => Number(key));
  const rows = section.rows.filter((row) => only === undefined || only.includes(row.id));
  const series = rows.map((row) => ({
    label: row.label,
    points: section.columns.flatMap(({ key }) => {
      const y = middle(row.cells[key]);
      return Number.isFinite(y) && (linearY || y > 0) ? [{ x: Number(key), y }] : [];
    }),
  }));
  const ys = series.flatMap(({ points }) => points.map((point) => point.y));
  const [left, top, right, bottom] = [70, 50, WIDTH - 20, 290];
  const xScale = axis(xs, left, right, linearX, false);
  const yScale = axis([...ys, ...(mark ? [mark.at] : [])], bottom, top, linearY, true);
  const unit = section.columns[0]?.unit ?? "count";
  const body = [];
  for (const tick of yScale.ticks) {
    const y = yScale.at(tick).toFixed(1);
    body.push(`<path class="grid" d="M${left} ${y}H${right}"/>`);
    body.push(`<text class="muted end" x="${left - 8}" y="${Number(y) + 4}">${show(tick, unit)}</text>`);
  }
  const shownX = xs.length > 9 ? xScale.ticks : xs;
  for (const x of shownX) {
    const title = section.columns.find(({ key }) => Number(key) === x)?.title ?? x.toLocaleString("en-US");
    body.push(
      `<text class="muted middle" x="${xScale.at(x).toFixed(1)}" y="${bottom + 20}">${escapeXml(title)}</text>`,
    );
  }
  for (const [n, { points }] of series.entries()) {
    const path = points.map(({ x, y }) => `${xScale.at(x).toFixed(1)} ${yScale.at(y).toFixed(1)}`).join("L");
    if (path !== "") body.push(`<path class="line c${n % 7}" d="M${path}"/>`);
  }
  if (mark !== undefined) {
    const y = yScale.at(mark.at).toFixed(1);
    body.push(`<path class="mark" d="M${left} ${y}H${right}"/>`);
    body.push(`<text class="marktext end" x="${right}" y="${Number(y) - 6}">${escapeXml(mark.text)}</text>`);
  }
  for (const [n, { label }] of series.entries()) {
    const [x, y] = [left + (n % 2) * 350, bottom + 48 + Math.floor(n / 2) * 22];
    body.push(
      `<path class="line c${n % 7}" d="M${x} ${y - 4}h24"/><text x="${x + 32}" y="${y}">${escapeXml(label)}</text>`,
    );
  }
  return svg(bottom + 60 + Math.ceil(series.length / 2) * 22, caption, body);
}

/**
 * @param {number[]} values
 * @param {number} from where the least is drawn
 * @param {number} to where the most is
 * @param {boolean} linear
 * @param {boolean} round whether the scale ends at round numbers
 */
function axis(values, from, to, linear, round) {
  if (linear) {
    const most = Math.max(...values);
    const step = niceStep(most / 5);
    const end = round ? Math.ceil(most / step) * step : most;
    const start = round ? 0 : Math.min(...values);
    const ticks = [];
    for (let tick = Math.ceil(start / step) * step; tick <= end; tick += step) ticks.push(tick);
    return { ticks, at: (/** @type {number} */ v) => from + ((to - from) * (v - start)) / (end - start) };
  }
  const log = Math.log10;
  const least = round ? Math.floor(log(Math.min(...values))) : log(Math.min(...values));
  const most = round ? Math.ceil(log(Math.max(...values))) : log(Math.max(...values));
  const ticks = [];
  for (let power = Math.ceil(least); power <= most; power++) ticks.push(10 ** power);
  const range = Math.max(most - least, 1e-9);
  return { ticks, at: (/** @type {number} */ v) => from + ((to - from) * (log(v) - least)) / range };
}

/** @param {number} rough the next of 1, 2, 5, 10, ... */
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((n) => n * power >= rough) ?? 10) * power;
}

/** @param {import("./report.mjs").Cell | undefined} cell */
function middle(cell) {
  if (typeof cell === "number") return cell;
  return typeof cell === "object" && cell !== null ? cell.median : Number.NaN;
}

/**
 * @param {number} height
 * @param {string} caption
 * @param {string[]} body
 */
function svg(height, caption, body) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(caption)}">`,
    `<style>${STYLE}\n</style>`,
    `<text class="caption" x="10" y="22">${escapeXml(caption)}</text>`,
    ...body,
    "</svg>\n",
  ].join("\n");
}

/** @param {string} text */
function escapeXml(text) {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
