// @ts-check
// Cloudflare published in 2017 (blog.cloudflare.com/counting-things-a-lot-of-different-things) that its two-window
// counter misjudged 0.003% of 400 million requests of 270,000 sources, with rates 6% off on average, and that
// three sources were let through above the limit. It counts every request, refused or not; so here.
import { randomFrom } from "../lib/traffic.mjs";
import { LIMIT, WINDOW_MS } from "./scenarios.mjs";

const SOURCES = 270_000;
const WINDOWS = 10;
/** Where each source sends much, so many requests say enough. */
const MOST_REQUESTS = 30_000_000;

/**
 * How much traffic sources send: each as a multiple of the limit, and in how large bursts.
 * @typedef {{ id: string, label: string, rate: (random: () => number, source: number) => number, onShare?: number }} Mix
 */

/** @param {() => number} random */
const near = (random) => 0.9 + 0.2 * random();

/** @param {() => number} random @param {number} source one in a thousand far above the limit, all others far below */
const far = (random, source) => (source % 1000 === 0 ? 10 + 20 * random() : 0.3 * random() ** 3);

/** @type {(every: number) => Mix} one source in so many within 10% of the limit, all others far from it */
const fewNear = (every) => ({
  id: `near-${every}`,
  label: `one source in ${every.toLocaleString("en-US")} near the limit, the others far`,
  rate: (random, source) => (source % every === 1 ? near(random) : far(random, source)),
});

/** @type {Mix[]} */
const mixes = [
  { id: "far", label: "all far from the limit", rate: far },
  fewNear(30_000),
  fewNear(1_000),
  fewNear(100),
  {
    id: "pareto",
    label: "a power law of rates (Pareto, 1.2)",
    rate: (random) => Math.min(20, 0.02 / (1 - random()) ** (1 / 1.2)),
  },
  { id: "spread", label: "even from zero to twice the limit", rate: (random) => 2 * random() },
  { id: "near", label: "all near the limit", rate: near },
  { id: "near-bursts", label: "all near it, 10 s on, 50 s off", rate: near, onShare: 1 / 6 },
];

/**
 * @param {number} scale
 * @returns {import("../lib/report.mjs").Section}
 */
export function cloudflareSection(scale) {
  const sources = Math.max(100, Math.round(SOURCES * scale));
  return {
    id: "accuracy-cloudflare",
    title: "Cloudflare's 0.003%, and when it holds",
    note: `Cloudflare [published](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/) in 2017 that its two-window counter misjudged 0.003% of 400 million requests from 270,000 sources, with rates 6% off on average. The replication: ${sources.toLocaleString("en-US")} sources (fewer where each sends much), limit ${LIMIT} per minute, ${WINDOWS} windows, and at every request the counter's estimate beside the true count of the last minute. *Near* is within 10% of the limit, *far* is a tenth of it on average or ten times as much. The published figure comes out where about one source in 30,000 is near its limit: nine of these. It says how rarely a source is near its limit, more than how well the counter counts: the rate is 7% off all the time, and only near the limit can that be wrong.`,
    columns: [
      { key: "requests", title: "requests", unit: "count" },
      { key: "wrong", title: "misjudged", unit: "share" },
      { key: "allowed", title: "wrongly allowed", unit: "share" },
      { key: "refused", title: "wrongly refused", unit: "share" },
      { key: "error", title: "mean error of the rate", unit: "share" },
    ],
    rows: mixes.map((mix) => ({
      id: mix.id,
      label: mix.label,
      cells: replicate(mix, sources, MOST_REQUESTS * scale),
    })),
    plot: {
      kind: "bars",
      column: "wrong",
      caption: "Requests that a two-window counter misjudges",
      scale: "log",
      mark: { at: 0.00003, text: "published" },
      neutral: true,
    },
  };
}

/**
 * @param {Mix} mix
 * @param {number} sources
 * @param {number} most requests
 */
function replicate({ rate, onShare = 1 }, sources, most) {
  const random = randomFrom(42);
  let [requests, allowed, refused, error, measured] = [0, 0, 0, 0, 0];
  for (let source = 0; source < sources && requests < most; source++) {
    const perMs = (rate(random, source) * LIMIT) / WINDOW_MS / onShare;
    const phase = random() * WINDOW_MS;
    /** @type {number[]} */
    const times = [];
    let [oldest, window, count, before] = [0, 0, 0, 0];
    for (let at = phase; ; ) {
      at -= Math.log(1 - random()) / perMs;
      if (at >= WINDOWS * WINDOW_MS + phase) break;
      if ((at + phase) % WINDOW_MS >= onShare * WINDOW_MS) {
        at += WINDOW_MS - ((at + phase) % WINDOW_MS); // idle until the next burst begins
      }
      const current = Math.floor(at / WINDOW_MS);
      if (current !== window) [before, count, window] = [current === window + 1 ? count : 0, 0, current];
      count++;
      times.push(at);
      while (at - /** @type {number} */ (times[oldest]) >= WINDOW_MS) oldest++;
      const truth = times.length - oldest;
      const estimate = count + before * (1 - (at % WINDOW_MS) / WINDOW_MS);
      requests++;
      if (window >= 1) {
        measured++;
        error += Math.abs(estimate - truth) / truth;
      }
      if (truth > LIMIT && estimate <= LIMIT) allowed++;
      if (truth <= LIMIT && estimate > LIMIT) refused++;
    }
  }
  return {
    requests,
    wrong: (allowed + refused) / requests,
    allowed: allowed / requests,
    refused: refused / requests,
    error: error / measured,
  };
}
