/**
 * Fixed window: one counter per window of the clock (00:00 to 00:01, 00:01 to 00:02, ...).
 *
 * Guarantee: at most `limit` per window of the clock, so up to twice the limit in a window that
 * lies across a boundary. The baseline the others are compared with.
 * Cost: two numbers per key, O(1).
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

/** Per key: the end of the window that is counted, and its count. */
const END = 0;
const COUNT = 1;
const WIDTH = 2;

export const fixedWindow: Algorithm<Rule, Float64Array> = {
  prepare: (rule) => rule,
  page: (_rule, keys) => new Float64Array(keys * WIDTH),
  clear(_rule, page, i) {
    page.fill(0, i * WIDTH, (i + 1) * WIDTH);
  },

  latest(rule, page, i) {
    const end = page[i * WIDTH + END];
    return end === 0 ? 0 : end - rule.window;
  },

  remaining: (rule, page, i, now) => Math.max(0, rule.limit - used(page, i, now)),

  wait: (rule, page, i, now, cost) => (cost > rule.limit ? Infinity : page[i * WIDTH + END] - now),

  charge(rule, page, i, now, at, cost) {
    const end = (Math.floor(at / rule.window) + 1) * rule.window;
    if (end <= now || end < page[i * WIDTH + END]) return;
    const before = end === page[i * WIDTH + END] ? page[i * WIDTH + COUNT] : 0;
    const after = Math.max(0, before + cost);
    page[i * WIDTH + END] = after === 0 ? 0 : end;
    page[i * WIDTH + COUNT] = after;
  },

  expiresAt: (_rule, page, i) => page[i * WIDTH + END],

  held(rule, page, i, now) {
    const count = used(page, i, now);
    const start = count === 0 ? undefined : page[i * WIDTH + END] - rule.window;
    return { count, oldestAt: start, newestAt: start };
  },

  count: (_rule, page, i, now) => used(page, i, now),
  resolutionMs: (rule) => rule.window,
  coversFrom: (rule, now) => now - (now % rule.window),
};

function used(page: Float64Array, i: number, now: number): number {
  return now < page[i * WIDTH + END] ? page[i * WIDTH + COUNT] : 0;
}
