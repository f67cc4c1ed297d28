import assert from "node:assert/strict";
import type { Decision } from "../decision.js";
import { SluiceError } from "../errors.js";
import type { Key } from "../key.js";
import type { Limiter } from "../limiter.js";
import type { Reservation } from "../reservation.js";
import { capacity } from "../rule.js";
import { Model } from "./model.js";
import { Digits, type Scenario } from "./scenario.js";
import type { VirtualClock, World } from "./world.js";

type Verb =
  | "tryAcquire"
  | "reserve"
  | "settle"
  | "renew"
  | "peek"
  | "status"
  | "count"
  | "step back"
  | "reset";

/** How often each verb comes, as a share of all steps. The first is what a trace shrinks to. */
const VERBS: readonly Verb[] = (
  [
    ["tryAcquire", 18],
    ["reserve", 4],
    ["settle", 3],
    ["renew", 1],
    ["peek", 2],
    ["status", 1],
    ["count", 1],
    ["step back", 1],
    ["reset", 1],
  ] as const
).flatMap(([verb, share]) => Array<Verb>(share).fill(verb));

/** Open reservations beyond this are forgotten, as a client that crashed would. */
const MOST_RESERVATIONS = 6;

/**
 * Plays random steps on a limiter and on its model, and throws at the first answer that differs.
 * Each step is decoded from one integer, so that a failing trace shrinks.
 */
export class Trace {
  readonly #clock: VirtualClock;
  readonly #isSync: boolean;
  readonly #limiter: Limiter;
  readonly #model: Model;
  readonly #keys: readonly Key[];
  readonly #window: number;
  readonly #cell: number;
  readonly #most: number;
  #reservations: { key: Key; reservation: Reservation; id: string }[] = [];
  readonly #steps: unknown[][] = [];
  readonly #lookBackMs: number;
  /** The latest time there was. */
  #peak = 0;
  /** When the last denied cost was told to come back. */
  #retryAt = 0;
  /** How many decisions were compared. */
  decisions = 0;

  constructor(world: World, scenario: Scenario) {
    const { rules, keys, startAt } = scenario;
    this.#clock = world.clock;
    this.#isSync = world.store.sync;
    this.#keys = keys;
    this.#limiter = world.limiter(rules);
    const windows = rules.map((rule) => rule.window);
    this.#window = Math.min(...windows, ...rules.flatMap(({ lease }) => lease ?? []));
    this.#cell = Math.ceil(rules[0].window / (rules[0].cells ?? 1));
    this.#most = Math.min(...rules.map(capacity));
    this.#lookBackMs = Math.max(...windows);
    this.#model = new Model(rules, this.#lookBackMs);
    this.#steps.push(["rules", ...rules.map((rule) => JSON.stringify(rule))]);
    world.clock.now = startAt;
  }

  async play(codes: readonly number[]): Promise<void> {
    try {
      for (const code of codes) {
        const digits = new Digits(code);
        const verb = digits.of(VERBS);
        const key = digits.of(this.#keys);
        this.#clock.now += this.#gap(digits);
        if (verb === "tryAcquire" && this.#isSync) this.#tryAcquireSync(key, this.#cost(digits));
        else await this.#step(verb, key, digits);
      }
    } catch (error) {
      throw new Error(
        `${String(error)}\nThe trace:\n${this.#steps.map((step) => step.join(" ")).join("\n")}`,
        {
          cause: error,
        },
      );
    }
  }

  async #step(verb: Verb, key: Key, digits: Digits): Promise<void> {
    const { now } = this.#clock;
    switch (verb) {
      case "tryAcquire": {
        const cost = this.#cost(digits);
        this.#note(verb, key, cost);
        return this.#compareDecision(await this.#limiter.tryAcquire(key, cost), key, cost, true);
      }
      case "peek": {
        const cost = this.#cost(digits);
        this.#note(verb, key, cost);
        return this.#compareDecision(await this.#limiter.peek(key, cost), key, cost, false);
      }
      case "reserve": {
        const cost = this.#cost(digits);
        this.#note(verb, key, cost);
        const reservation = await this.#limiter.reserve(key, cost);
        this.#compareDecision(reservation.decision, key, cost, true, true);
        if (reservation.decision.allowed) {
          this.#reservations.unshift({ key, reservation, id: String(this.decisions) });
        }
        this.#reservations.splice(MOST_RESERVATIONS);
        return;
      }
      case "settle":
        return this.#settle(digits);
      case "renew":
        return this.#renew(digits);
      case "status":
        this.#note(verb, key);
        return assert.deepStrictEqual(await this.#limiter.status(key), this.#model.status(now, key));
      case "count":
        return this.#count(key, digits);
      case "step back":
        return this.#stepBack(1 + digits.below(this.#window));
      case "reset":
        return this.#reset(key);
    }
  }

  #tryAcquireSync(key: Key, cost: number): void {
    this.#note("tryAcquire", key, cost);
    this.#compareDecision(this.#limiter.tryAcquireSync(key, cost), key, cost, true);
  }

  async #settle(digits: Digits): Promise<void> {
    const [open] = this.#reservations.splice(digits.below(this.#reservations.length || 1), 1);
    if (open === undefined) return;
    const { key, reservation, id } = open;
    const { cost, decision } = reservation;
    const actual = digits.of([0, Math.floor(cost / 2), cost, cost + 1, cost * 2, cost + this.#most]);
    this.#note("settle", key, `${cost} to ${actual}`, `taken at ${decision.rules.map((rule) => rule.at)}`);
    if (actual === 0) await reservation.cancel();
    else await reservation.settle(actual);
    this.#model.settle(this.#clock.now, key, decision, cost, actual, id);
  }

  async #renew(digits: Digits): Promise<void> {
    const open = this.#reservations[digits.below(this.#reservations.length || 1)];
    if (open === undefined) return;
    const { key, reservation, id } = open;
    this.#note("renew", key, `taken at ${reservation.decision.rules.map((rule) => rule.at)}`);
    const isHeld = await reservation.renew();
    const isHeldByModel = this.#model.renew(this.#clock.now, key, reservation.decision, id);
    assert.equal(isHeld, reservation.cost === 0 || isHeldByModel, "renewed");
  }

  async #count(key: Key, digits: Digits): Promise<void> {
    const { now } = this.#clock;
    const from = Math.max(0, now - digits.below(3 * this.#window));
    const to = digits.of([Number.MAX_SAFE_INTEGER, now, from, from + digits.below(2 * this.#window)]);
    this.#note("count", key, `${from} to ${to}`);
    const expected = this.#model.count(now, key, from, to);
    const counting = this.#limiter.count(key, { from, to });
    if (expected !== undefined) return assert.deepStrictEqual(await counting, expected);
    await assert.rejects(counting, (error) => error instanceof SluiceError && error.code === "NOT_COUNTED");
  }

  /** Keys of which something expired in between start anew: a store may have dropped it or not. */
  async #stepBack(ms: number): Promise<void> {
    const { now } = this.#clock;
    this.#peak = Math.max(this.#peak, now);
    const earlier = Math.max(0, now - ms, this.#peak - this.#lookBackMs);
    for (const key of this.#keys) {
      if (this.#model.forgetsBetween(key, earlier, now)) await this.#reset(key);
    }
    this.#clock.now = earlier;
    this.#note("step back");
  }

  /**
   * Forgets the key's reservations too: to settle one that the store forgot takes from whoever came in
   * the same millisecond, or from nobody where the store knows requests by name. Both are right.
   */
  async #reset(key: Key): Promise<void> {
    this.#note("reset", key);
    await this.#limiter.reset(key);
    this.#model.reset(key);
    this.#reservations = this.#reservations.filter((open) => !this.#model.countsTogether(key, open.key));
  }

  #compareDecision(actual: Decision, key: Key, cost: number, commit: boolean, holds = false): void {
    const { now } = this.#clock;
    this.decisions++;
    const expected = this.#model.decide(now, key, cost, commit, String(this.decisions), holds);
    if (!isSame(actual, expected)) assert.deepStrictEqual(actual, expected);
    if (!actual.allowed && actual.retryAfterMs < Infinity) this.#retryAt = now + actual.retryAfterMs;
  }

  #cost(digits: Digits): number {
    const kind = digits.below(16);
    if (kind < 10) return 1;
    if (kind === 10) return 0;
    if (kind === 11) return this.#most + 1;
    if (kind === 12) return this.#most;
    if (kind === 13) return Math.ceil(this.#most / 2);
    return 1 + digits.below(this.#most);
  }

  /** How much time passes before a step: mostly none or little, and with intent around what matters. */
  #gap(digits: Digits): number {
    const { now } = this.#clock;
    const kind = digits.below(16);
    if (kind < 6) return 0;
    if (kind < 8) return 1;
    if (kind < 10) return digits.below(1 + Math.ceil(this.#window / Math.min(this.#most, 10)));
    if (kind === 10) return digits.below(this.#window);
    if (kind === 11) return Math.max(0, this.#window - 1 + digits.below(3));
    if (kind === 12) return Math.max(0, this.#retryAt - now);
    if (kind === 13) return Math.max(0, this.#retryAt - now - 1);
    if (kind === 14) return this.#cell - (now % this.#cell) - digits.below(2);
    return digits.below(8) === 7 ? this.#window * (2 + digits.below(50)) : digits.below(this.#cell);
  }

  #note(verb: Verb, key: Key = "", ...rest: unknown[]): void {
    this.#steps.push([this.#clock.now, verb, typeof key === "string" ? key : JSON.stringify(key), ...rest]);
  }
}

/** Field by field, since a deep comparison of every decision would take most of the time. */
function isSame(actual: Decision, expected: Decision): boolean {
  return (
    actual.allowed === expected.allowed &&
    actual.rule === expected.rule &&
    actual.limit === expected.limit &&
    actual.remaining === expected.remaining &&
    actual.retryAfterMs === expected.retryAfterMs &&
    actual.resetAfterMs === expected.resetAfterMs &&
    actual.degraded === undefined &&
    actual.rules.length === expected.rules.length &&
    expected.rules.every((rule, r) => {
      const other = actual.rules[r];
      return (
        other.rule === rule.rule &&
        other.allowed === rule.allowed &&
        other.limit === rule.limit &&
        other.remaining === rule.remaining &&
        other.retryAfterMs === rule.retryAfterMs &&
        other.resetAfterMs === rule.resetAfterMs &&
        other.at === rule.at
      );
    })
  );
}
