// @ts-check
// The traffic, the same for every limiter: made from fixed seeds, before any limiter sees it.
import { randomFrom, START } from "../lib/traffic.mjs";

export const LIMIT = 100;
export const WINDOW_MS = 60_000;

/**
 * @typedef {{ at: number, key: string, cost: number, node: number }} Arrival in true time
 * @typedef {object} Scenario
 * @property {string} id
 * @property {string} title
 * @property {string} note
 * @property {number} limit
 * @property {number} windowMs
 * @property {Arrival[]} arrivals
 * @property {number} [retryMs] a refused call comes again after this long, until it is admitted
 * @property {number[]} [clockErrorsMs] what each node's clock is ahead; one node with the true time unless given
 */

/**
 * Requests at a rate that may change, as a Poisson process thinned from its highest rate.
 * @param {object} process
 * @param {() => number} process.random
 * @param {number} process.lengthMs
 * @param {number} process.most requests per millisecond
 * @param {(at: number) => number} [process.share] of the highest rate at that time, from 0 to 1
 */
function poisson({ random, lengthMs, most, share = () => 1 }) {
  const times = [];
  for (let at = 0; ; ) {
    at -= Math.log(1 - random()) / most;
    if (at >= lengthMs) return times;
    if (random() < share(at)) times.push(START + Math.floor(at));
  }
}

/**
 * @param {string} key
 * @param {number[]} times
 * @returns {Arrival[]}
 */
function calls(key, times) {
  return times.map((at) => ({ at, key, cost: 1, node: 0 }));
}

/**
 * @param {Arrival[][]} streams
 * @returns {Arrival[]}
 */
function merged(...streams) {
  return streams.flat().sort((a, b) => a.at - b.at);
}

/**
 * An attack of a few windows, repeated with idle time in between.
 * @param {number} times how often
 * @param {number} windows how many one attack takes, idle time included
 * @param {(start: number) => number[]} attack times from the start of a window of the clock
 */
function repeated(times, windows, attack) {
  return Array.from({ length: times }, (_, n) => attack(START + n * windows * WINDOW_MS)).flat();
}

/**
 * @param {number} at
 * @param {number} count
 */
function burst(at, count) {
  return Array.from({ length: count }, () => at);
}

/** @param {number} keys @param {(key: string, random: () => number) => Arrival[]} stream */
function perKey(keys, stream) {
  return merged(...Array.from({ length: keys }, (_, n) => stream(`key:${n}`, randomFrom(1_000 + n))));
}

const RATE = LIMIT / WINDOW_MS;
const rule = { limit: LIMIT, windowMs: WINDOW_MS };

/** @param {number} scale 1 for all of it, less for a shorter look @returns {Scenario[]} */
export function scenarios(scale = 1) {
  const lengthMs = Math.max(3, Math.round(30 * scale)) * WINDOW_MS;
  const attacks = Math.max(2, Math.round(20 * scale));
  return [
    {
      ...rule,
      id: "poisson-at",
      title: "Poisson, on average exactly the limit",
      note: "Five keys, independent arrivals.",
      arrivals: perKey(5, (key, random) => calls(key, poisson({ random, lengthMs, most: RATE }))),
    },
    {
      ...rule,
      id: "poisson-over",
      title: "Poisson, twice the limit",
      note: "Five keys, independent arrivals.",
      arrivals: perKey(5, (key, random) => calls(key, poisson({ random, lengthMs, most: 2 * RATE }))),
    },
    {
      ...rule,
      id: "on-off",
      title: "Bursts: 10 s on, 50 s off",
      note: "Five keys, on average the limit per window, each burst at a time of its own in the window.",
      arrivals: perKey(5, (key, random) => {
        const phase = random() * WINDOW_MS;
        const share = (/** @type {number} */ at) => ((at + phase) % WINDOW_MS < 10_000 ? 1 : 0);
        return calls(key, poisson({ random, lengthMs, most: 6 * RATE, share }));
      }),
    },
    {
      ...rule,
      id: "diurnal",
      title: "A day, from a tenth of the limit to twice the limit and back",
      note: "One key over six hours.",
      arrivals: perKey(1, (key, random) => {
        const length = 6 * 3_600_000 * scale;
        const share = (/** @type {number} */ at) => 0.525 - 0.475 * Math.cos((2 * Math.PI * at) / length);
        return calls(key, poisson({ random, lengthMs: length, most: 2 * RATE, share }));
      }),
    },
    {
      ...rule,
      id: "zipf",
      title: "20,000 keys, by Zipf",
      note: "100,000 requests in four windows; the key of rank r has 1/r of the first one's, so about 25 are over.",
      arrivals: zipf(20_000, Math.round(100_000 * scale), 4 * WINDOW_MS),
    },
    {
      ...rule,
      id: "boundary",
      title: "Adversary: two bursts around a boundary",
      note: "One call as a window of the clock begins, 99 just before it ends, 100 just after.",
      arrivals: calls(
        "attacker",
        repeated(attacks, 4, (at) => [
          at,
          ...burst(at + WINDOW_MS - 100, 99),
          ...burst(at + WINDOW_MS + 50, 100),
        ]),
      ),
    },
    {
      ...rule,
      id: "idle-burst-drip",
      title: "Adversary: idle, a burst at a window's end, then a drip",
      note: "100 calls in the last 100 ms of a window of the clock, then one every 250 ms for the window after it.",
      arrivals: calls(
        "attacker",
        repeated(attacks, 5, (at) => [
          ...burst(at + 2 * WINDOW_MS - 100, LIMIT),
          ...Array.from({ length: 240 }, (_, n) => at + 2 * WINDOW_MS + n * 250),
        ]),
      ),
    },
    {
      ...rule,
      id: "late-bursts",
      title: "Adversary: bursts at the ends of two windows",
      note: "100 calls 100 ms before a window of the clock ends, and 100 200 ms before the next one does.",
      arrivals: calls(
        "attacker",
        repeated(attacks, 5, (at) => [
          ...burst(at + WINDOW_MS - 100, LIMIT),
          ...burst(at + 2 * WINDOW_MS - 200, LIMIT),
        ]),
      ),
    },
    {
      ...rule,
      id: "early-bursts",
      title: "Honest bursts, one window apart",
      note: "100 calls as a window of the clock begins and 100 more just over one window later: all of them fit. A refused call comes again every second.",
      retryMs: 1_000,
      arrivals: calls(
        "client",
        repeated(attacks, 4, (at) => [...burst(at + 10, LIMIT), ...burst(at + WINDOW_MS + 20, LIMIT)]),
      ),
    },
    {
      ...rule,
      id: "retry-storm",
      title: "Retry storm",
      note: "One and a half times the limit in new calls, and each refused call comes again every 2 s, for 10 s.",
      arrivals: perKey(1, (key, random) =>
        calls(key, poisson({ random, lengthMs: lengthMs / 2, most: 1.5 * RATE })),
      ),
      retryMs: 2_000,
    },
    {
      ...rule,
      id: "weighted",
      title: "Weighted costs",
      note: "Five keys, costs from 1 to 40, one and a half times the limit in units.",
      arrivals: perKey(5, (key, random) =>
        calls(key, poisson({ random, lengthMs, most: (1.5 * RATE) / 20.5 })).map((call) => ({
          ...call,
          cost: 1 + Math.floor(random() * 40),
        })),
      ),
    },
    {
      ...rule,
      id: "nodes",
      title: "Four nodes whose clocks differ",
      note: "Twice the limit over all nodes; their clocks are 3 s behind, right, 1 s ahead and 5 s ahead. Each has a connection of its own to one real Redis, whose clock is right. Sluice and the limiters whose windows are a TTL go by Redis' clock; @upstash/ratelimit and the notes' scripts go by the time that each client sends; what counts in each process lets each node have the whole limit.",
      clockErrorsMs: [-3_000, 0, 1_000, 5_000],
      arrivals: perKey(3, (key, random) =>
        calls(key, poisson({ random, lengthMs, most: 2 * RATE })).map((call) => ({
          ...call,
          node: Math.floor(random() * 4),
        })),
      ),
    },
  ];
}

/**
 * @param {number} keys
 * @param {number} requests
 * @param {number} lengthMs
 */
function zipf(keys, requests, lengthMs) {
  const random = randomFrom(7);
  const upTo = new Float64Array(keys);
  let sum = 0;
  for (let n = 0; n < keys; n++) upTo[n] = sum += 1 / (n + 1);
  return poisson({ random, lengthMs, most: requests / lengthMs }).map((at) => {
    const drawn = random() * sum;
    let [low, high] = [0, keys - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (/** @type {number} */ (upTo[middle]) > drawn) high = middle;
      else low = middle + 1;
    }
    return { at, key: `key:${low}`, cost: 1, node: 0 };
  });
}
