// @ts-check
import { inUnit } from "./report.mjs";
import { kindOf, legible, middleOf, round, scaleOf, svg, TOP, text, WIDTH, widthOf } from "./svg.mjs";

const ROW = 25;

/**
 * One bar per row, the shortest first. On a logarithmic scale, where a bar would have no beginning, a dot.
 * @param {import("./report.mjs").Section} section
 * @param {import("./plot.mjs").Bars} plot
 */
export function bars(section, { column, caption, scale, mark }) {
  const unit = section.columns.find(({ key }) => key === column)?.unit ?? "count";
  const rows = section.rows
    .map(({ label, cells }) => ({ label: label.replaceAll("`", ""), value: middleOf(cells[column]) }))
    .filter(({ value }) => Number.isFinite(value))
    .sort((a, b) => a.value - b.value);
  const left = 16 + Math.max(...rows.map(({ label }) => widthOf(label))) + 10;
  const right = WIDTH - 16 - Math.max(...rows.map(({ value }) => widthOf(inUnit(value, unit)) + 12));
  const values = [...rows.map(({ value }) => value), ...(mark ? [mark.at] : [])];
  const log = scale === "log";
  const positive = values.filter((value) => !log || value > 0);
  const axis = scaleOf(log ? positive : [0, ...positive], left, right, { linear: !log, exact: !log });
  const bottom = TOP + (log || mark ? 14 : 0) + rows.length * ROW;
  const top = bottom - rows.length * ROW;
  const body = [];
  if (log) {
    const label = (/** @type {number} */ tick) => ({
      at: axis.at(tick),
      width: widthOf(inUnit(tick, unit), 12),
    });
    for (const tick of legible(axis.ticks, label)) {
      const x = round(axis.at(tick));
      body.push(
        `<path class="grid" d="M${x} ${top - 2}V${bottom}"/>`,
        text("muted small middle", x, top - 8, inUnit(tick, unit)),
      );
    }
  }
  for (const [n, { label, value }] of rows.entries()) {
    const y = top + n * ROW;
    const kind = kindOf(label);
    body.push(text(`end${kind === "own" ? " strong" : ""}`, left - 10, y + 17, label));
    const end = value > 0 || !log ? axis.at(value) : left;
    if (log && value > 0) {
      body.push(
        `<path class="stem" d="M${left} ${y + 12.5}H${round(end)}"/><circle class="${kind}" cx="${round(end)}" cy="${y + 12.5}" r="6"/>`,
      );
    } else if (value > 0) {
      body.push(...bar(kind, left, y + 4, end, mark && axis.at(mark.at)));
    }
    if (log) body.push(text("muted end", WIDTH - 16, y + 17, inUnit(value, unit)));
    else body.push(text("muted", valueAt(end, mark && axis.at(mark.at)), y + 17, inUnit(value, unit)));
  }
  if (mark !== undefined) {
    const x = round(axis.at(mark.at));
    body.push(`<path class="mark" d="M${x} ${top - 2}V${bottom}"/>`);
    body.push(text("marktext small middle", x, log ? bottom + 15 : top - 7, mark.text)); // ticks are above
  }
  const height = bottom + (log && mark ? 26 : 12);
  return svg(height, caption, `${section.title}${log ? "; logarithmic scale" : ""}`, body);
}

/**
 * Where a bar's value is written: behind its end, and not across the mark.
 * @param {number} end
 * @param {number} [mark]
 */
function valueAt(end, mark = 0) {
  return (end <= mark && end + 40 > mark ? mark : end) + 8;
}

/**
 * What goes beyond the mark is drawn in another colour.
 * @param {string} kind
 * @param {number} left
 * @param {number} y
 * @param {number} end
 * @param {number | undefined} mark
 */
function bar(kind, left, y, end, mark) {
  const rect = (/** @type {string} */ classes, /** @type {number} */ from, /** @type {number} */ to) =>
    `<rect class="${classes}" x="${round(from)}" y="${y}" width="${round(to - from)}" height="17" rx="2"/>`;
  if (mark === undefined || end <= mark + 0.5) return [rect(kind, left, end)];
  return [rect(kind, left, mark), rect("over", mark, end)];
}
