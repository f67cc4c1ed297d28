import assert from "node:assert/strict";
import type { RuleDecision } from "../src/decision.js";
import { createLimiter, type Limiter } from "../src/limiter.js";
import type { Reservation } from "../src/reservation.js";
import { type Rule, slidingLog } from "../src/rule.js";
import type { Store } from "../src/store.js";
import { Digits } from "../src/testing/scenario.js";
import { SharedLog } from "./sharedLog.js";

const START = 1_700_000_000_000;
const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
/** Together as rules often are, or as far apart as they can be. */
const WINDOWS = [
  [SECOND, MINUTE],
  [HOUR, DAY],
  [SECOND, MINUTE, HOUR],
  [MINUTE, HOUR, DAY],
  [SECOND],
  [DAY],
  [SECOND, SECOND + 1],
  [7, 10],
  [SECOND, 30 * DAY],
  [5 * HOUR, DAY, 5 * DAY],
];
const LIMITS = [100, 30, 300, 1, 2, 5, 1000, 100_000, 1_000_000, 2 ** 50];
const NAMES = ["x", "y", "z"];
const KEYS = ["a", "b", "c"];
/** The longest time between two entries of one chunk; the largest cost of a narrow entry. */
const [LONGEST_OFFSET, LARGEST_COST] = [2 ** 24 - 1, 2 ** 16 - 1];
const MOST_OPEN = 8;
const MOST_TIMES = 150;

type Verb = "take" | "reserve" | "settle" | "peek" | "status" | "count" | "reset";

/** How often each comes, as a share of all calls. The first is what a trace shrinks to. */
const VERBS: readonly Verb[] = (
  [
    ["take", 12],
    ["reserve", 4],
    ["settle", 5],
    ["peek", 2],
    ["status", 1],
    ["count", 1],
    ["reset", 1],
  ] as const
).flatMap(([verb, share]) => Array<Verb>(share).fill(verb));

/** Two random numbers below 2^53: when it is, and what is asked then. */
export type Step = readonly [when: number, what: number];

/** Plays random traffic on exact windows over the same keys, and throws at the first answer that is not the model's. */
export class SharedLogTrace {
  readonly #clock = { now: START };
  readonly #store: Store;
  readonly #logs = new Map<string, SharedLog>();
  readonly #notes: { readonly key: string; readonly text: string }[] = [];
  /** The key of the first answer that was not the model's. */
  #failed: string | undefined;
  /** Of the limiter there is now; reservations may be an earlier one's. */
  #rules: readonly Rule[];
  #limiter: Limiter;
  #open: { key: string; rules: readonly Rule[]; reservation: Reservation }[] = [];
  #retryAt = START;
  /** When something was asked, latest first. */
  #times: number[] = [START];

  constructor(createStore: (clock: () => number) => Store, code: number) {
    this.#store = createStore(() => this.#clock.now);
    const digits = new Digits(code);
    this.#rules = rulesOf(digits.of(WINDOWS), digits);
    this.#limiter = this.#limiterOf(this.#rules);
  }

  async play(steps: readonly Step[]): Promise<void> {
    try {
      for (const [when, what] of steps) await this.#step(new Digits(when), what);
    } catch (error) {
      const isOf = (key: string) => this.#failed === undefined || key === "" || key === this.#failed;
      const told = this.#notes.filter(({ key }) => isOf(key)).map(({ text }) => text);
      throw new Error(`${String(error)}\nThe trace:\n${told.join("\n")}`, { cause: error });
    }
  }

  /** A moment, or many evenly spaced ones, at each of which the same is asked, at once. */
  async #step(when: Digits, what: number): Promise<void> {
    const moments = when.below(6) < 5 ? 1 : 2 + when.below(99);
    const spacing = when.of([1, 7, Math.ceil(when.of(this.#windows) / (20 + when.below(200)))]);
    if (when.below(12) === 11) this.#change(when);
    this.#clock.now += this.#gap(when);
    for (let n = 0; n < moments; n++) {
      if (n > 0) this.#clock.now += spacing;
      this.#times = [this.#clock.now, ...this.#times.slice(0, MOST_TIMES)];
      const answers: Promise<void>[] = [];
      const digits = new Digits(what);
      for (let calls = digits.of([1, 1, 2, 3]); calls > 0; calls--) {
        const [verb, key, repeated] = [digits.of(VERBS), digits.of(KEYS), digits.of([1, 1, 1, 1, 2, 5])];
        const cost = this.#cost(key, digits);
        for (let r = 0; r < repeated; r++) answers.push(...this.#ask(verb, key, cost, digits));
      }
      await Promise.all(answers);
    }
  }

  /** Mostly with intent: something leaves a window or could come back, a chunk ends, the clock steps back. */
  #gap(digits: Digits): number {
    const { now } = this.#clock;
    const [kind, near, a] = [digits.below(16), digits.below(3) - 1, digits.of(this.#windows)];
    if (kind < 3) return kind;
    if (kind < 5) return digits.below(kind === 3 ? 50 : a);
    if (kind === 5) return Math.max(0, this.#retryAt - now - digits.below(2));
    if (kind === 6) return Math.max(0, digits.of(this.#times) + LONGEST_OFFSET + near - now);
    if (kind < 10) {
      const between = Math.abs(digits.below(3) * a - digits.below(3) * digits.of(this.#windows));
      return kind === 7 ? between + digits.below(a) : Math.max(0, between + near);
    }
    const past = digits.of(this.#times) - now;
    return kind < 15 ? Math.max(0, past + a + near) : past + digits.of([near, digits.below(a)]);
  }

  #cost(key: string, digits: Digits): number {
    const most = Math.min(...this.#rules.map(({ limit }) => limit));
    const status = this.#log(key).status(this.#rules, this.#clock.now);
    const left = Math.min(...status.map(({ remaining }) => remaining));
    const kind = digits.below(16);
    if (kind < 10) return 1;
    if (kind < 13) return 1 + digits.below(Math.min(most, 90_000));
    return digits.of([0, 2, left, left + 1, most, most + 1, LARGEST_COST, LARGEST_COST + 1]);
  }

  /** Other limits, other windows or another order, over what was counted before. */
  #change(digits: Digits): void {
    const windows = [...this.#windows];
    const kind = digits.below(4);
    if (kind === 0) windows[digits.below(windows.length)] = digits.of(WINDOWS.flat());
    const rules = rulesOf(windows, digits);
    this.#rules = kind === 1 ? rules : [...rules].reverse();
    this.#limiter = this.#limiterOf(this.#rules);
  }

  /** Asks at once, since the order of calls counts, and compares when it is answered. */
  #ask(verb: Verb, key: string, cost: number, digits: Digits): Promise<void>[] {
    if (verb === "settle") return this.#settle(digits);
    if (verb === "reset") return [this.#reset(key)];
    const [limiter, rules, { now }] = [this.#limiter, this.#rules, this.#clock];
    const forgotten = this.#log(key).isVague(rules, now) ? [this.#reset(key)] : [];
    const log = this.#log(key);
    switch (verb) {
      case "take":
      case "peek": {
        this.#note(verb, key, cost);
        const expected = this.#expect(log.decide(rules, now, cost, verb === "take"));
        const answer = verb === "take" ? limiter.tryAcquire(key, cost) : limiter.peek(key, cost);
        return [...forgotten, answer.then(({ rules }) => this.#compare(key, rules, expected))];
      }
      case "reserve": {
        this.#note(verb, key, cost);
        const expected = this.#expect(log.decide(rules, now, cost, true));
        const answer = limiter.reserve(key, cost).then((reservation) => {
          this.#compare(key, reservation.decision.rules, expected);
          if (!reservation.decision.allowed) return;
          this.#open.push({ key, rules, reservation });
          if (this.#open.length > MOST_OPEN) this.#open.shift();
        });
        return [...forgotten, answer];
      }
      case "status": {
        this.#note(verb, key);
        const expected = log.status(rules, now);
        return [...forgotten, limiter.status(key).then((status) => this.#compare(key, status, expected))];
      }
      case "count": {
        const from = now - digits.below(2 * digits.of(this.#windows));
        const to = from + digits.below(this.#windows[0]);
        this.#note(verb, key, `${from} to ${to}`);
        const expected = log.count(rules, now, from, to);
        const counting = limiter.count(key, { from, to });
        return [...forgotten, counting.then((count) => this.#compare(key, count, expected))];
      }
    }
  }

  #compare(key: string, actual: unknown, expected: unknown): void {
    try {
      assert.deepStrictEqual(actual, expected);
    } catch (error) {
      this.#failed ??= key;
      throw error;
    }
  }

  #settle(digits: Digits): Promise<void>[] {
    const [made] = this.#open.splice(digits.below(this.#open.length || 1), 1);
    if (made === undefined) return [];
    const { key, rules, reservation } = made;
    const { cost, decision } = reservation;
    const actual = digits.of([0, 0, Math.floor(cost / 2), cost + 1, cost + LARGEST_COST]);
    const { now } = this.#clock;
    const forgotten = this.#log(key).isVague(rules, now) ? [this.#reset(key)] : [];
    const [{ at }] = decision.rules;
    this.#note("settle", key, `${cost} of ${at} to ${actual}`);
    this.#log(key).settle(rules, now, at, actual - cost);
    return [...forgotten, reservation.settle(actual)];
  }

  #reset(key: string): Promise<void> {
    this.#note("reset", key);
    this.#logs.delete(key);
    return this.#limiter.reset(key);
  }

  #expect(decisions: readonly RuleDecision[]): readonly RuleDecision[] {
    const wait = Math.max(...decisions.map(({ retryAfterMs }) => retryAfterMs));
    if (wait > 0 && wait < Infinity) this.#retryAt = this.#clock.now + wait;
    return decisions;
  }

  get #windows(): readonly number[] {
    return this.#rules.map(({ window }) => window);
  }

  #log(key: string): SharedLog {
    let log = this.#logs.get(key);
    if (log === undefined) {
      log = new SharedLog();
      this.#logs.set(key, log);
    }
    return log;
  }

  #limiterOf(rules: readonly Rule[]): Limiter {
    this.#note("rules", "", ...rules.map(({ name, limit, window }) => `${name} ${limit}/${window}`));
    return createLimiter({ name: "shared", store: this.#store, rules });
  }

  #note(verb: string, key: string, ...words: readonly unknown[]): void {
    this.#notes.push({ key, text: [this.#clock.now, verb, key, ...words].join(" ") });
  }
}

function rulesOf(windows: readonly number[], digits: Digits): readonly Rule[] {
  return windows.map((window, w) => slidingLog({ name: NAMES[w], limit: digits.of(LIMITS), window }));
}
