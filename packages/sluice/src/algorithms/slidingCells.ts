/**
 * Sliding cells: the window cut into cells of the clock, one count for each.
 *
 * Guarantee: "strict" is never over: a cell counts in full until its last millisecond has left the
 * window, so it refuses a little early and never late. "weighted" is approximate: the oldest cell
 * counts by the share of it that is still inside.
 * Cost: one number per cell and key, whatever the limit; time O(1) while cells leave one by one,
 * and never more than one pass over the cells.
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

export interface Cells {
  readonly limit: number;
  readonly window: number;
  readonly strict: boolean;
  /** Milliseconds per cell. */
  readonly cell: number;
  /** How many cells can overlap a window: those inside it, and one that is leaving. */
  readonly ring: number;
}

/**
 * Per key: the number of the cell after the newest, the total of all counts, and the ring of counts.
 * Cells that have left the window by the last charge are 0 in the ring.
 */
const END = 0;
const TOTAL = 1;
const COUNTS = 2;

export const slidingCells: Algorithm<Cells, Float64Array> = {
  prepare(rule: Rule) {
    const { limit, window, mode, cells = 1 } = rule;
    const cell = Math.ceil(window / cells);
    return { limit, window, strict: mode === "strict", cell, ring: Math.ceil(window / cell) + 1 };
  },
  page: (cells, keys) => new Float64Array(keys * width(cells)),
  clear(cells, page, i) {
    page.fill(0, i * width(cells), (i + 1) * width(cells));
  },

  latest(cells, page, i) {
    return Math.max(0, page[i * width(cells) + END] - 1) * cells.cell;
  },

  remaining: (cells, page, i, now) => Math.max(0, cells.limit - load(cells, page, i, now)),

  wait(cells, page, i, now, cost) {
    if (cost > cells.limit) return Infinity;
    const start = i * width(cells);
    let inside = page[start + TOTAL];
    for (let k = firstKept(cells, page, start); k < page[start + END]; k++) {
      const count = countOf(cells, page, start, k);
      inside -= count;
      const share = shareThatFits(cells, count, cells.limit - cost - inside);
      if (share >= 0) return leaves(cells, k) - share - now;
    }
    return Infinity;
  },

  charge(cells, page, i, now, at, cost) {
    const k = Math.floor(at / cells.cell);
    const start = i * width(cells);
    dropLeft(cells, page, start, now);
    const before = page[start + TOTAL] === 0 ? 0 : countOf(cells, page, start, k);
    const after = Math.max(0, before + cost);
    if (k < firstInside(cells, now) || after === before) return;
    page[start + END] = Math.max(page[start + END], k + 1);
    page[start + TOTAL] += after - before;
    page[start + COUNTS + (k % cells.ring)] = after;
    if (page[start + TOTAL] === 0) page[start + END] = 0;
    else while (countOf(cells, page, start, page[start + END] - 1) === 0) page[start + END]--;
  },

  expiresAt(cells, page, i) {
    const start = i * width(cells);
    for (let k = page[start + END] - 1; k >= firstKept(cells, page, start); k--) {
      if (countOf(cells, page, start, k) > 0) return leaves(cells, k);
    }
    return 0;
  },

  held(cells, page, i, now) {
    let oldestAt: number | undefined;
    let newestAt: number | undefined;
    const start = i * width(cells);
    for (
      let k = Math.max(firstKept(cells, page, start), firstInside(cells, now));
      k < page[start + END];
      k++
    ) {
      if (countOf(cells, page, start, k) === 0) continue;
      newestAt = k * cells.cell;
      oldestAt ??= newestAt;
    }
    return { count: load(cells, page, i, now), oldestAt, newestAt };
  },

  count(cells, page, i, _now, from, to) {
    let count = 0;
    const start = i * width(cells);
    const end = Math.min(page[start + END], Math.floor(to / cells.cell) + 1);
    for (let k = Math.max(firstKept(cells, page, start), Math.floor(from / cells.cell)); k < end; k++) {
      count += countOf(cells, page, start, k);
    }
    return count;
  },
  resolutionMs: (cells) => cells.cell,
  coversFrom: (cells, now) => firstInside(cells, now) * cells.cell,
};

function width(cells: Cells): number {
  return COUNTS + cells.ring;
}

function countOf(cells: Cells, page: Float64Array, start: number, k: number): number {
  return page[start + COUNTS + (k % cells.ring)];
}

/** The oldest cell that the ring has room for. */
function firstKept(cells: Cells, page: Float64Array, start: number): number {
  return Math.max(0, page[start + END] - cells.ring);
}

/** When the last millisecond of cell `k` leaves the window. */
function leaves(cells: Cells, k: number): number {
  return (k + 1) * cells.cell - 1 + cells.window;
}

/** The oldest cell of which something is still in the window. */
function firstInside(cells: Cells, now: number): number {
  return Math.max(0, Math.floor((now - cells.window + 1) / cells.cell));
}

/** What is counted now, in whole units. */
function load(cells: Cells, page: Float64Array, i: number, now: number): number {
  const start = i * width(cells);
  const total = page[start + TOTAL];
  if (total === 0) return 0;
  const inside = firstInside(cells, now);
  const end = Math.min(inside, page[start + END]);
  let left = 0;
  for (let k = firstKept(cells, page, start); k < end; k++) left += countOf(cells, page, start, k);
  if (cells.strict || inside < firstKept(cells, page, start) || inside >= page[start + END])
    return total - left;
  const count = countOf(cells, page, start, inside);
  const share = Math.min(cells.cell, leaves(cells, inside) - now);
  return total - left - count + Math.ceil((count * share) / cells.cell);
}

/** Forgets the cells that have left the window. */
function dropLeft(cells: Cells, page: Float64Array, start: number, now: number): void {
  const end = Math.min(firstInside(cells, now), page[start + END]);
  for (let k = firstKept(cells, page, start); k < end; k++) {
    const slot = start + COUNTS + (k % cells.ring);
    page[start + TOTAL] -= page[slot];
    page[slot] = 0;
  }
}

/**
 * The largest share of a cell, in milliseconds, at which its count leaves it within `room`;
 * -1 when even a cell that has left would be too much.
 */
function shareThatFits(cells: Cells, count: number, room: number): number {
  if (room < 0) return -1;
  if (count <= room) return cells.cell;
  if (cells.strict) return 0;
  let most = Math.floor((room * cells.cell) / count);
  while (Math.ceil((count * most) / cells.cell) > room) most--;
  while (Math.ceil((count * (most + 1)) / cells.cell) <= room) most++;
  return most;
}
