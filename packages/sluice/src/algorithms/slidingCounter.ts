/**
 * Sliding counter: the current window of the clock in full, and the previous one by the share of
 * it that the sliding window still covers.
 *
 * Guarantee: approximate. It takes the previous window's requests to be spread evenly; where they
 * are not, it admits up to twice the limit in a window, or refuses wrongly.
 * Cost: four numbers per key, O(1).
 *
 * It is the weighted cells algorithm with a single cell, as wide as the window.
 */
import type { Algorithm } from "./algorithm.js";
import { type Cells, slidingCells } from "./slidingCells.js";

export const slidingCounter: Algorithm<Cells, Float64Array> = {
  ...slidingCells,
  prepare: (rule) => slidingCells.prepare({ ...rule, cells: 1, mode: "weighted" }),
};
