// @ts-check
// What all plots have in common: size, colours, scales and text.

export const WIDTH = 760;
/** Where a plot begins below its caption. */
export const TOP = 62;

const STYLE = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .caption { font-size: 15px; font-weight: 600 } .muted { fill: #59636e } .small { font-size: 12px } .strong { font-weight: 600 }
  .end { text-anchor: end } .middle { text-anchor: middle }
  .grid { stroke: #d1d9e0; fill: none } .stem { stroke: #d1d9e0; stroke-width: 2 }
  .mark { stroke: #cf222e; stroke-width: 1.5; stroke-dasharray: 4 4; fill: none } .marktext { fill: #cf222e }
  .own { fill: #0969da } .peer { fill: #8c959f } .floor { fill: none; stroke: #8c959f; stroke-dasharray: 3 3 } .over { fill: #e5534b }
  .line { fill: none; stroke-width: 2; stroke-linejoin: round } .l-own { stroke: #0969da; stroke-width: 3 } .l-floor { stroke: #8c959f; stroke-dasharray: 5 4 }
  .l0 { stroke: #bc4c00 } .l1 { stroke: #1a7f37 } .l2 { stroke: #8250df } .l3 { stroke: #bf3989 } .l4 { stroke: #9a6700 }
  .t-own { fill: #0969da; font-weight: 600 } .t-floor { fill: #59636e } .t0 { fill: #bc4c00 } .t1 { fill: #1a7f37 } .t2 { fill: #8250df } .t3 { fill: #bf3989 } .t4 { fill: #9a6700 }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc } .muted { fill: #9198a1 } .grid, .stem { stroke: #3d444d } .mark { stroke: #ff7b72 } .marktext { fill: #ff7b72 }
    .own { fill: #4493f8 } .peer { fill: #7d8590 } .floor { stroke: #9198a1 } .over { fill: #f47067 }
    .l-own { stroke: #4493f8 } .l-floor { stroke: #9198a1 } .l0 { stroke: #f0883e } .l1 { stroke: #3fb950 } .l2 { stroke: #ab7df8 } .l3 { stroke: #db61a2 } .l4 { stroke: #d29922 }
    .t-own { fill: #4493f8 } .t-floor { fill: #9198a1 } .t0 { fill: #f0883e } .t1 { fill: #3fb950 } .t2 { fill: #ab7df8 } .t3 { fill: #db61a2 } .t4 { fill: #d29922 }
  }`;

/**
 * @param {number} height
 * @param {string} caption
 * @param {string} below a second line, in a lighter tone
 * @param {string[]} body
 */
export function svg(height, caption, below, body) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(caption)}">`,
    `<style>${STYLE}\n</style>`,
    `<text class="caption" x="16" y="24">${escaped(caption)}</text>`,
    `<text class="muted small" x="16" y="43">${escaped(below)}</text>`,
    ...body,
    "</svg>\n",
  ].join("\n");
}

/** @param {string} classes @param {number} x @param {number} y @param {string} content */
export function text(classes, x, y, content) {
  return `<text class="${classes}" x="${round(x)}" y="${round(y)}">${escaped(content)}</text>`;
}

/** About how wide a text is, on the safe side. @param {string} content @param {number} [size] */
export function widthOf(content, size = 13) {
  const bold = kindOf(content) === "own" ? 1.12 : 1;
  return content.length * size * 0.54 * bold + 4;
}

/** @param {number} value */
export function round(value) {
  return Number(value.toFixed(1));
}

/** Whose row it is. @param {string} label @returns {"own" | "floor" | "peer"} */
export function kindOf(label) {
  if (label.startsWith("Sluice")) return "own";
  return label.startsWith("floor") ? "floor" : "peer";
}

/** @param {import("./report.mjs").Cell | undefined} cell */
export function middleOf(cell) {
  if (typeof cell === "number") return cell;
  return typeof cell === "object" && cell !== null ? cell.median : Number.NaN;
}

/**
 * From a value to its place, and round values to draw lines at.
 * @param {number[]} values
 * @param {number} from where the scale begins
 * @param {number} to where it ends
 * @param {{ linear: boolean, exact?: boolean }} how `exact`: the scale ends at the values rather than at round ones
 */
export function scaleOf(values, from, to, { linear, exact = false }) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const ticks = linear ? evenTicks(exact ? least : 0, most) : roundTicks(least, most);
  const [start, end] = exact
    ? [least, most]
    : [Math.min(ticks[0] ?? least, least), Math.max(ticks.at(-1) ?? most, most)];
  const measure = linear ? (/** @type {number} */ value) => value : Math.log;
  const range = Math.max(measure(end) - measure(start), 1e-9);
  return {
    ticks: ticks.filter((tick) => tick >= start && tick <= end),
    at: (/** @type {number} */ value) => from + ((to - from) * (measure(value) - measure(start))) / range,
  };
}

/** @param {number} least @param {number} most */
function evenTicks(least, most) {
  const rough = (most - least) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((n) => n * power >= rough) ?? 10) * power;
  const first = Math.ceil(least / step);
  const count = Math.ceil(most / step) - first + 1;
  return Array.from({ length: count }, (_, n) => (first + n) * step);
}

/** Powers of ten, or 1, 2, 5 of them where the values are close together. @param {number} least @param {number} most */
function roundTicks(least, most) {
  const steps = most / least > 100 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(least)) - 1; power <= Math.ceil(Math.log10(most)); power++) {
    for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(1)));
  }
  const first = ticks.findLastIndex((tick) => tick <= least);
  const last = ticks.findIndex((tick) => tick >= most);
  return ticks.slice(Math.max(0, first), last === -1 ? undefined : last + 1);
}

/**
 * The places where a label fits beside the one before it.
 * @param {number[]} ticks
 * @param {(tick: number) => { at: number, width: number }} label
 */
export function legible(ticks, label) {
  let free = -Infinity;
  return ticks.filter((tick) => {
    const { at, width } = label(tick);
    if (at - width / 2 < free) return false;
    free = at + width / 2 + 6;
    return true;
  });
}

/** @param {string} content */
function escaped(content) {
  return content
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
