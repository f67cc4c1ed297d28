// @ts-check
import { START, setTime } from "../lib/traffic.mjs";
import { Judge } from "./judge.mjs";

/**
 * @typedef {import("./scenarios.mjs").Scenario} Scenario
 * @typedef {import("./scenarios.mjs").Arrival} Arrival
 * @typedef {(key: string, cost: number) => boolean | Promise<boolean>} Decide
 */

/**
 * Where a node's limiter stands.
 * @typedef {object} Place
 * @property {() => import("ioredis").Redis} redis the node's connection
 * @property {{ now: () => number, ends: Map<string, number> }} server Redis' true time, and when its TTLs end by it
 * @property {string} play a name of which no other play has a part
 */

/**
 * A limiter as the lab knows it.
 * @typedef {{ limit: number, windowMs: number }} Rule
 * @typedef {object} Candidate
 * @property {string} id
 * @property {string} label
 * @property {string} algorithm what it does, in a few words
 * @property {"one" | "several"} [nodes] where it takes part: in all scenarios unless told
 * @property {boolean} [remembers] whether the client itself keeps answers, so that a call's answer must be there before the key's next call
 * @property {boolean} [weights] whether a call can have a cost
 * @property {(rule: Rule, place: Place) => Decide | Promise<Decide>} make a limiter for one node
 */

/** A client has its answer after so long, in virtual time. */
const REPLY_MS = 2;
/** How many calls may be under way. */
const MOST_OPEN = 500;
const GIVE_UP_MS = 10_000;

let plays = 0;

/**
 * Plays a scenario to a limiter and judges it by true time.
 * @param {Candidate} candidate
 * @param {Scenario} scenario
 * @param {readonly import("ioredis").Redis[]} connections one for each node
 * @param {(call: Arrival, allowed: boolean) => void} [onDecision]
 */
export async function play(candidate, scenario, connections, onDecision = () => {}) {
  const judge = new Judge(scenario);
  const errors = scenario.clockErrorsMs ?? [0];
  let trueTime = START;
  const server = { now: () => trueTime, ends: new Map() };
  const name = `play-${plays++}`;
  const nodes = await Promise.all(
    errors.map((_, node) =>
      candidate.make(scenario, {
        redis: () => /** @type {import("ioredis").Redis} */ (connections[node]),
        server,
        play: name,
      }),
    ),
  );
  /** @type {{ call: Arrival, answer: boolean | Promise<boolean> }[]} */
  let open = [];
  /** Since when each key has a call under way. @type {Map<string, number>} */
  const openSince = new Map();
  const patienceMs = candidate.remembers ? REPLY_MS : Infinity;
  const retries = new Retries(scenario.retryMs);

  const settle = async () => {
    for (const { call, answer } of open) {
      const allowed = await answer;
      judge.record(call.key, call.at, call.cost, allowed);
      onDecision(call, allowed);
      if (!allowed) retries.add(call);
    }
    open = [];
    openSince.clear();
  };

  for (const arrival of scenario.arrivals) {
    await askRetriesUntil(arrival.at);
    await ask(arrival);
  }
  await askRetriesUntil(Infinity);
  await settle();
  return judge.judgement;

  /**
   * Whatever is refused comes again in the order of time, so answers are awaited before a retry could be due.
   * @param {number} time
   */
  async function askRetriesUntil(time) {
    if (scenario.retryMs === undefined) return;
    for (;;) {
      const next = Math.min(time, retries.nextAt);
      const answered = open[0] === undefined ? Infinity : open[0].call.at + scenario.retryMs;
      if (answered <= next && open.length > 0) await settle();
      else if (retries.nextAt <= time && retries.nextAt < Infinity) await ask(retries.take());
      else return;
    }
  }

  /** @param {Arrival} call */
  async function ask(call) {
    const since = openSince.get(call.key) ?? call.at;
    if (call.at - since >= patienceMs || open.length >= MOST_OPEN) await settle();
    openSince.set(call.key, openSince.get(call.key) ?? call.at);
    trueTime = call.at;
    setTime(call.at + /** @type {number} */ (errors[call.node]));
    const decide = /** @type {Decide} */ (nodes[call.node]);
    open.push({ call, answer: decide(call.key, call.cost) });
    if (nodes.length > 1) await settle(); // connections may overtake each other
  }
}

/** Calls that were refused and will come again, in the order of their times. */
class Retries {
  /** @type {Arrival[]} */
  #waiting = [];
  /** When each of them was made for the first time. @type {WeakMap<Arrival, number>} */
  #firstAt = new WeakMap();
  #afterMs;

  /** @param {number | undefined} afterMs */
  constructor(afterMs) {
    this.#afterMs = afterMs;
  }

  get nextAt() {
    return this.#waiting[0]?.at ?? Infinity;
  }

  /** @param {Arrival} refused */
  add(refused) {
    if (this.#afterMs === undefined) return;
    const firstAt = this.#firstAt.get(refused) ?? refused.at;
    const call = { ...refused, at: refused.at + this.#afterMs };
    if (call.at - firstAt > GIVE_UP_MS) return;
    this.#firstAt.set(call, firstAt);
    this.#waiting.push(call); // all wait equally long, so this keeps the order
  }

  take() {
    return /** @type {Arrival} */ (this.#waiting.shift());
  }
}
