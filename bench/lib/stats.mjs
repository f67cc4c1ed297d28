// @ts-check

/**
 * A median with its spread: half of all rounds lie between `low` and `high`.
 * @typedef {{ median: number, low: number, high: number }} Spread
 */

/**
 * @param {readonly number[]} values
 * @returns {Spread}
 */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.25), high: quantile(sorted, 0.75) };
}

/**
 * @param {readonly number[]} sorted
 * @param {number} q
 */
function quantile(sorted, q) {
  const place = (sorted.length - 1) * q;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place % 1);
}

/**
 * How many times one is of the other, round by round: what slows a whole round down cancels out.
 * @param {readonly number[]} values
 * @param {readonly number[]} base
 */
export function ratio(values, base) {
  return spread(values.map((value, round) => value / /** @type {number} */ (base[round])));
}
