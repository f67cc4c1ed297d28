// @ts-check
import { inUnit } from "./report.mjs";
import { kindOf, middleOf, round, scaleOf, svg, TOP, text, WIDTH, widthOf } from "./svg.mjs";

const LABEL = 17;

/**
 * One line per row over the columns, whose keys are numbers, each named where it ends. Scales are logarithmic
 * unless told.
 * @param {import("./report.mjs").Section} section
 * @param {import("./plot.mjs").Lines} plot
 */
export function lines(section, { caption, only, linearX = false, linearY = false, steps = false, mark }) {
  const unit = section.columns[0]?.unit ?? "count";
  const titles = new Map(section.columns.map(({ key, title }) => [Number(key), title]));
  const xs = [...titles.keys()];
  let [owns, others] = [0, 0];
  const colourOf = (/** @type {string} */ label) => {
    const kind = kindOf(label);
    if (kind === "floor" || (kind === "own" && owns++ === 0)) return `-${kind}`;
    return String(others++ % 5);
  };
  const series = section.rows
    .filter((row) => only === undefined || only.includes(row.id))
    .map(({ label, cells }) => ({
      label,
      colour: colourOf(label),
      points: xs
        .map((x) => ({ x, y: middleOf(cells[String(x)]) }))
        .filter(({ y }) => Number.isFinite(y) && (linearY || y > 0)),
    }))
    .filter(({ points }) => points.length > 0);
  const ys = series.flatMap(({ points }) => points.map(({ y }) => y));
  const bottom = TOP + 240;
  const y = scaleOf([...ys, ...(mark ? [mark.at] : [])], bottom, TOP, { linear: linearY });
  const left = 24 + Math.max(...y.ticks.map((tick) => widthOf(inUnit(tick, unit), 12)));
  const right = WIDTH - 20 - Math.max(...(steps ? [40] : series.map(({ label }) => widthOf(label))));
  const x = scaleOf(xs, left + 6, right - 12, { linear: linearX, exact: true });
  const body = [];
  for (const tick of y.ticks) {
    body.push(`<path class="grid" d="M${round(left)} ${round(y.at(tick))}H${round(right - 6)}"/>`);
    body.push(text("muted small end", left - 8, y.at(tick) + 4, inUnit(tick, unit)));
  }
  for (const tick of linearX ? x.ticks : xs) {
    const title =
      titles.get(tick) ??
      (titles.values().next().value ?? "").replace(/[\d,]+/, tick.toLocaleString("en-US"));
    body.push(text("muted small middle", x.at(tick), bottom + 20, shortened(title)));
  }
  if (mark !== undefined) {
    const at = y.at(mark.at);
    body.push(`<path class="mark" d="M${round(left)} ${round(at)}H${round(right - 6)}"/>`);
    body.push(text("marktext small", right, at + 4, mark.text));
  }
  for (const { colour, points } of [...series].reverse()) {
    const places = points.map((point) => `${round(x.at(point.x))} ${round(y.at(point.y))}`);
    const path = steps
      ? points
          .map(
            (point, n) =>
              `${n === 0 ? "M" : "H"}${round(x.at(point.x))}${n === 0 ? " " : "V"}${round(y.at(point.y))}`,
          )
          .join("")
      : `M${places.join("L")}`;
    body.push(`<path class="line l${colour}" d="${path}"/>`);
  }
  if (steps) body.push(...namesOnLines());
  else body.push(...namesAtEnds());
  const scales = linearX && linearY ? "" : "; logarithmic scales";
  return svg(bottom + 34, caption, `${section.title}${scales}`, body);

  function namesOnLines() {
    return series.map(({ label, colour, points }) => {
      const highest = Math.max(...points.map((point) => point.y));
      return text(`t${colour} middle`, (left + right) / 2, y.at(highest) - 7, label);
    });
  }

  function namesAtEnds() {
    const ends = series
      .map(({ label, colour, points }) => ({
        label,
        colour,
        .../** @type {{ x: number, y: number }} */ (points.at(-1)),
      }))
      .map((end) => ({ ...end, from: x.at(end.x) + 4, at: y.at(end.y) }))
      .sort((a, b) => a.at - b.at);
    const places = apart(
      ends.map(({ at }) => at),
      TOP,
      bottom,
    );
    return ends.flatMap(({ label, colour, from, at }, n) => {
      const place = places[n] ?? at;
      const leader = `<path class="grid" d="M${round(from)} ${round(at)}L${round(right - 4)} ${round(place)}"/>`;
      const far = right - from > 24 || Math.abs(place - at) > 6;
      return [...(far ? [leader] : []), text(`t${colour}`, right, place + 4, label)];
    });
  }
}
/**
 * Moves labels apart so that none covers another, none further than it must be.
 * @param {number[]} places in order
 * @param {number} top
 * @param {number} bottom
 */
function apart(places, top, bottom) {
  const moved = [...places];
  for (let n = 0; n < moved.length; n++)
    moved[n] = Math.max(moved[n] ?? 0, (moved[n - 1] ?? top - LABEL) + LABEL);
  for (let n = moved.length - 1; n >= 0; n--)
    moved[n] = Math.min(moved[n] ?? 0, (moved[n + 1] ?? bottom + LABEL) - LABEL);
  return moved;
}

/** @param {string} title 10,000 as 10k, 1,000,000 as 1M: they stand close together */
function shortened(title) {
  return title.replace(/,000,000\b/, "M").replace(/,000\b/, "k");
}
