// @ts-check
// Limiters that make a call wait its turn instead of refusing it, on virtual time, timers included.
import Bottleneck from "bottleneck";
import { RateLimiter } from "limiter";
import pThrottle from "p-throttle";
import { RateLimiterMemory, RateLimiterQueue } from "rate-limiter-flexible";
import { createLimiter, leakyBucket, memoryStore, slidingCells, slidingLog, tokenBucket } from "sluice";
import { VirtualTimers } from "../lib/timers.mjs";
import { START } from "../lib/traffic.mjs";
import { Judge } from "./judge.mjs";

/**
 * @typedef {import("./play.mjs").Rule} Rule
 * @typedef {import("./scenarios.mjs").Arrival} Arrival
 * @typedef {import("./scenarios.mjs").Scenario} Scenario
 * @typedef {object} Queue
 * @property {string} id
 * @property {string} label
 * @property {string} algorithm
 * @property {boolean} [weights] whether a call can have a cost
 * @property {(rule: Rule & { costs: boolean }) => (key: string, cost: number, job: () => void) => unknown} make runs a job when its turn has come
 * @typedef {{ key: string, cost: number, at: number, start: number }} Turn
 */

/** What a queue can serve: no more than the limit, on average. */
const PLAYED = ["poisson-at", "on-off", "boundary", "idle-burst-drip", "late-bursts", "early-bursts"];
const PLAYED_WITH_COSTS = "weighted";

/** @param {string} name @param {string} algorithm @param {(rule: Rule) => import("sluice").RuleInput} rules @param {boolean} weights @returns {Queue} */
function sluice(name, algorithm, rules, weights) {
  return {
    id: `acquire ${name}`,
    label: `Sluice acquire, ${name}`,
    algorithm,
    weights,
    make(rule) {
      const store = memoryStore({ clock: () => Date.now() });
      const limiter = createLimiter({ rules: rules(rule), store, maxWaiting: 1_000_000 });
      return (key, cost, job) => limiter.acquire(key, { cost }).then(job);
    },
  };
}

/**
 * One limiter for each key, made when the key is first seen.
 * @template T
 * @param {() => T} make
 * @returns {(key: string) => T}
 */
function perKey(make) {
  /** @type {Map<string, T>} */
  const made = new Map();
  return (key) => {
    const known = made.get(key) ?? make();
    made.set(key, known);
    return known;
  };
}

/** @type {(id: string, algorithm: string, strict: boolean) => Queue} */
const throttle = (id, algorithm, strict) => ({
  id,
  label: id,
  algorithm,
  weights: true,
  make({ limit, windowMs, costs }) {
    const weight = costs ? { weight: (/** @type {number} */ cost) => cost } : {};
    const options = { limit, interval: windowMs, strict, ...weight };
    const throttled = perKey(() =>
      pThrottle(options)((/** @type {number} */ _cost, /** @type {() => void} */ job) => job()),
    );
    return (key, cost, job) => throttled(key)(cost, job);
  },
});

/** @type {(id: string, algorithm: string, weights: boolean, options: (rule: Rule) => Bottleneck.ConstructorOptions) => Queue} */
const bottleneck = (id, algorithm, weights, options) => ({
  id,
  label: id,
  algorithm,
  weights,
  make(rule) {
    const group = new Bottleneck.Group(options(rule));
    return (key, cost, job) => group.key(key).schedule({ weight: cost }, async () => job());
  },
});

/** @type {Queue[]} */
const queues = [
  sluice("slidingLog", "exact log", ({ limit, windowMs }) => slidingLog({ limit, window: windowMs }), true),
  sluice(
    "slidingCells",
    "60 cells in full",
    ({ limit, windowMs }) => slidingCells({ limit, window: windowMs }),
    true,
  ),
  sluice(
    "tokenBucket",
    "bucket of the limit's size",
    ({ limit, windowMs }) => tokenBucket({ limit, window: windowMs }),
    true,
  ),
  sluice(
    "leakyBucket",
    "evenly spaced",
    ({ limit, windowMs }) => leakyBucket({ limit, window: windowMs }),
    false,
  ),
  throttle("p-throttle", "window from the first call", false),
  throttle("p-throttle, strict", "log of calls", true),
  bottleneck("bottleneck, reservoir", "refilled once per window by a timer", true, ({ limit, windowMs }) => ({
    reservoir: limit,
    reservoirRefreshAmount: limit,
    reservoirRefreshInterval: windowMs,
  })),
  bottleneck("bottleneck, minTime", "evenly spaced", false, ({ limit, windowMs }) => ({
    minTime: windowMs / limit,
  })),
  {
    id: "limiter removeTokens",
    label: "limiter, removeTokens",
    algorithm: "bucket and a window from the first hit",
    weights: true,
    make({ limit, windowMs }) {
      const limiters = perKey(() => new RateLimiter({ tokensPerInterval: limit, interval: windowMs }));
      return (key, cost, job) => limiters(key).removeTokens(cost).then(job);
    },
  },
  {
    id: "RateLimiterQueue",
    label: "rate-limiter-flexible RateLimiterQueue",
    algorithm: "window from the first hit",
    weights: true,
    make({ limit, windowMs }) {
      const queue = new RateLimiterQueue(new RateLimiterMemory({ points: limit, duration: windowMs / 1000 }));
      return (key, cost, job) => queue.removeTokens(cost, key).then(job);
    },
  },
];

/** Nobody waits longer than this before the lab gives up on a queue. */
const PATIENCE_MS = 3_600_000;

/**
 * When each call of a scenario had its turn.
 * @param {Queue} queue
 * @param {Scenario} scenario
 * @returns {Promise<Turn[]>} in the order of arrival
 */
async function playQueue(queue, scenario) {
  const timers = new VirtualTimers(START);
  try {
    const costs = scenario.id === PLAYED_WITH_COSTS;
    const enter = queue.make({ ...scenario, costs });
    const turns = scenario.arrivals.map(({ key, cost, at }) => ({ key, cost, at, start: Infinity }));
    let waiting = 0;
    for (const turn of turns) {
      if (turn.at > timers.now) await timers.passUntil(turn.at);
      waiting++;
      enter(turn.key, turn.cost, () => {
        turn.start = timers.now;
        waiting--;
      });
    }
    await timers.passUntil(timers.now + PATIENCE_MS, () => waiting === 0);
    return turns;
  } finally {
    timers.release();
  }
}

/**
 * The best that can be done in order: each call as soon as those before it have begun and there is room.
 * @param {Scenario} scenario
 * @returns {number[]} when each call begins, in the order of arrival
 */
function idealStarts({ arrivals, limit, windowMs }) {
  const lines = perKey(() => ({
    /** @type {{ start: number, cost: number }[]} */ begun: [],
    head: 0,
    sum: 0,
  }));
  return arrivals.map(({ key, cost, at }) => {
    const line = lines(key);
    let start = Math.max(at, line.begun.at(-1)?.start ?? 0);
    for (let oldest = line.begun[line.head]; oldest; oldest = line.begun[line.head]) {
      const over = line.sum + cost > limit;
      if (!over && start - oldest.start < windowMs) break;
      start = Math.max(start, oldest.start + windowMs);
      line.sum -= oldest.cost;
      line.head++;
    }
    line.begun.push({ start, cost });
    line.sum += cost;
    return start;
  });
}

/**
 * @param {Scenario} scenario
 * @param {Turn[]} turns
 */
function judged(scenario, turns) {
  const judge = new Judge(scenario);
  const begun = turns.filter(({ start }) => start < Infinity).sort((a, b) => a.start - b.start);
  for (const { key, cost, start } of begun) judge.record(key, start, cost, true);
  const ideal = idealStarts(scenario);
  return {
    most: judge.judgement.mostInWindow / scenario.limit,
    early: judge.judgement.wronglyAllowed / turns.length,
    late: Math.max(...turns.map(({ start }, n) => start - /** @type {number} */ (ideal[n]))) / 1000,
  };
}

/**
 * @param {readonly Scenario[]} scenarios
 * @returns {Promise<import("../lib/report.mjs").Section>}
 */
export async function queueSection(scenarios) {
  const played = scenarios.filter(({ id }) => PLAYED.includes(id) || id === PLAYED_WITH_COSTS);
  const rows = [];
  for (const queue of queues) {
    /** @type {ReturnType<typeof judged>[]} */
    const outcomes = [];
    for (const scenario of played) {
      if (scenario.id === PLAYED_WITH_COSTS && !queue.weights) continue;
      outcomes.push(judged(scenario, await playQueue(queue, scenario)));
    }
    const worst = (/** @type {"most" | "early" | "late"} */ key) =>
      Math.max(...outcomes.map((row) => row[key]));
    rows.push({
      id: queue.id,
      label: queue.label,
      cells: { algorithm: queue.algorithm, most: worst("most"), early: worst("early"), late: worst("late") },
    });
  }
  return {
    id: "accuracy-queues",
    title: "Those that wait instead of refusing",
    note: "p-throttle and bottleneck refuse nothing: a call that does not fit waits for its turn, and so it does with `acquire`, with limiter's removeTokens and with rate-limiter-flexible's queue. Their timers run on virtual time too. What can be judged is when each call began, beside the ideal queue: in order, each as soon as there is room. *Begun too early* are those for which the last minute had no room. Each figure is the worst over the scenarios above that a queue can serve: Poisson at the limit, both kinds of bursts, the adversaries, and weighted costs where costs are known.",
    columns: [
      { key: "algorithm", title: "how it counts", unit: "text" },
      { key: "most", title: "most in a true window, of the limit", unit: "share" },
      { key: "early", title: "begun too early", unit: "share" },
      { key: "late", title: "worst wait beyond the ideal", unit: "s" },
    ],
    rows,
    plot: {
      kind: "bars",
      column: "most",
      caption: "The most begun in any true minute, of the limit",
      scale: "linear",
      mark: { at: 1, text: "limit" },
      neutral: true,
    },
  };
}
