/**
 * Token bucket: holds up to `burst` tokens and gains `limit` of them per window, continuously.
 *
 * Guarantee: at most `burst + limit` in any window; never more than `burst` at once.
 * Cost: three numbers per key, O(1), exact in integers.
 *
 * Tokens are counted in units of `1 / window` of a token (shortened by the common divisor), so
 * that what flows in per millisecond is a whole number and no rounding ever shows.
 */
import { capacity, type Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

export interface Bucket {
  /** Units that flow in per millisecond. */
  readonly inflow: number;
  /** Units that make one token. */
  readonly token: number;
  readonly burst: number;
}

/** Per key: units missing from a full bucket, when that was so, and since when it has not been full. */
const MISSING = 0;
const AT = 1;
const SINCE = 2;
const WIDTH = 3;

export const tokenBucket: Algorithm<Bucket, Float64Array> = {
  prepare(rule: Rule) {
    const divisor = commonDivisor(rule.limit, rule.window);
    return { inflow: rule.limit / divisor, token: rule.window / divisor, burst: capacity(rule) };
  },
  page: (_bucket, keys) => new Float64Array(keys * WIDTH),
  clear(_bucket, page, i) {
    page.fill(0, i * WIDTH, (i + 1) * WIDTH);
  },

  latest: (_bucket, page, i) => page[i * WIDTH + AT],

  remaining(bucket, page, i, now) {
    return Math.max(0, Math.floor(bucket.burst - missing(bucket, page, i, now) / bucket.token));
  },

  wait(bucket, page, i, now, cost) {
    if (cost > bucket.burst) return Infinity;
    const over = missing(bucket, page, i, now) + (cost - bucket.burst) * bucket.token;
    return Math.ceil(over / bucket.inflow);
  },

  /**
   * What was taken at `at` has flowed in again once the bucket was full after that; so giving back
   * then changes nothing, and a late charge counts only for what would still be missing.
   */
  charge(bucket, page, i, now, at, cost) {
    const short = missing(bucket, page, i, now);
    const since = short > 0 ? page[i * WIDTH + SINCE] : now;
    const units = cost * bucket.token;
    let after = short;
    if (cost > 0) after += Math.max(0, units - Math.max(0, since - at) * bucket.inflow);
    else if (at >= since) after = Math.max(0, after + units);
    if (after === short) return;
    page[i * WIDTH + MISSING] = after;
    page[i * WIDTH + AT] = after > 0 ? now : 0;
    page[i * WIDTH + SINCE] = after > 0 ? Math.min(since, at) : 0;
  },

  expiresAt(bucket, page, i) {
    return page[i * WIDTH + AT] + Math.ceil(page[i * WIDTH + MISSING] / bucket.inflow);
  },

  held(bucket, page, i, now) {
    const count = Math.ceil(missing(bucket, page, i, now) / bucket.token);
    if (count === 0) return { count, oldestAt: undefined, newestAt: undefined };
    return { count, oldestAt: page[i * WIDTH + SINCE], newestAt: page[i * WIDTH + AT] };
  },

  count: () => 0,
  resolutionMs: () => 0,
  coversFrom: (_bucket, now) => now,
};

function missing(bucket: Bucket, page: Float64Array, i: number, now: number): number {
  return Math.max(0, page[i * WIDTH + MISSING] - (now - page[i * WIDTH + AT]) * bucket.inflow);
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b);
}
