/**
 * Sliding cells: the window cut into cells of the clock, one count for each.
 *
 * Guarantee: "strict" is never over: a cell counts in full until its last millisecond has left the
 * window, so it refuses a little early and never late. "weighted" is approximate: the oldest cell
 * counts by the share of it that is still inside.
 * Cost: one number per cell and key, whatever the limit; time grows with the cells alone.
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

/** Per key: the number of the newest cell plus one (0: none), then the ring of counts. */
const NEWEST = 0;
const COUNTS = 1;

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
    const newest = page[i * width(cells) + NEWEST];
    return newest === 0 ? 0 : (newest - 1) * cells.cell;
  },

  check(cells, page, i, now, cost) {
    if (cost > cells.limit) return Infinity;
    const newest = page[i * width(cells) + NEWEST] - 1;
    let inside = total(cells, page, i, now);
    for (let k = oldest(cells, page, i, now); k <= newest; k++) {
      const count = at(cells, page, i, k);
      inside -= count;
      const share = shareThatFits(cells, count, cells.limit - cost - inside);
      if (share >= 0) return Math.max(0, leaves(cells, k) - share - now);
    }
    return 0;
  },

  charge(cells, page, i, now, at, cost) {
    const k = Math.floor(at / cells.cell);
    const start = i * width(cells);
    const newest = page[start + NEWEST] - 1;
    if (share(cells, k, now) === 0 || (k > newest && cost <= 0)) return;
    if (k > newest) {
      for (let gone = Math.max(newest + 1, k - cells.ring + 1); gone <= k; gone++) {
        page[start + COUNTS + (gone % cells.ring)] = 0;
      }
      page[start + NEWEST] = k + 1;
    }
    const slot = start + COUNTS + (k % cells.ring);
    page[slot] = Math.max(0, page[slot] + cost);
  },

  remaining: (cells, page, i, now) => Math.max(0, cells.limit - load(cells, page, i, now)),

  expiresAt(cells, page, i) {
    const newest = page[i * width(cells) + NEWEST] - 1;
    for (let k = newest; k >= Math.max(0, newest - cells.ring + 1); k--) {
      if (at(cells, page, i, k) > 0) return leaves(cells, k);
    }
    return 0;
  },

  held(cells, page, i, now) {
    let oldestAt: number | undefined;
    let newestAt: number | undefined;
    const newest = page[i * width(cells) + NEWEST] - 1;
    for (let k = oldest(cells, page, i, now); k <= newest; k++) {
      if (at(cells, page, i, k) === 0) continue;
      newestAt = k * cells.cell;
      oldestAt ??= newestAt;
    }
    return { count: load(cells, page, i, now), oldestAt, newestAt };
  },

  count(cells, page, i, now, from, to) {
    let count = 0;
    const newest = page[i * width(cells) + NEWEST] - 1;
    const last = Math.min(newest, Math.floor(to / cells.cell));
    const first = Math.max(oldest(cells, page, i, now), Math.floor(from / cells.cell));
    for (let k = first; k <= last; k++) count += at(cells, page, i, k);
    return count;
  },
  resolutionMs: (cells) => cells.cell,
  coversFrom: (cells, now) => Math.max(0, Math.floor((now - cells.window + 1) / cells.cell)) * cells.cell,
};

function width(cells: Cells): number {
  return COUNTS + cells.ring;
}

function at(cells: Cells, page: Float64Array, i: number, k: number): number {
  return page[i * width(cells) + COUNTS + (k % cells.ring)];
}

/** When the last millisecond of cell `k` leaves the window. */
function leaves(cells: Cells, k: number): number {
  return (k + 1) * cells.cell - 1 + cells.window;
}

/** How many milliseconds of cell `k` are still in the window. */
function share(cells: Cells, k: number, now: number): number {
  return Math.min(cells.cell, Math.max(0, leaves(cells, k) - now));
}

/** The oldest cell that is still in the window and in the ring. */
function oldest(cells: Cells, page: Float64Array, i: number, now: number): number {
  const newest = page[i * width(cells) + NEWEST] - 1;
  const first = Math.floor((now - cells.window + 1) / cells.cell);
  return Math.max(0, first, newest - cells.ring + 1);
}

/** The counts of all cells that are in the window, each in full. */
function total(cells: Cells, page: Float64Array, i: number, now: number): number {
  let sum = 0;
  const newest = page[i * width(cells) + NEWEST] - 1;
  for (let k = oldest(cells, page, i, now); k <= newest; k++) sum += at(cells, page, i, k);
  return sum;
}

/** What is counted now, in whole units. */
function load(cells: Cells, page: Float64Array, i: number, now: number): number {
  const full = total(cells, page, i, now);
  const k = oldest(cells, page, i, now);
  if (cells.strict || k >= page[i * width(cells) + NEWEST]) return full;
  const count = at(cells, page, i, k);
  return full - count + Math.ceil((count * share(cells, k, now)) / cells.cell);
}

/**
 * The largest share of a cell, in milliseconds, at which its count leaves within `room`;
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
