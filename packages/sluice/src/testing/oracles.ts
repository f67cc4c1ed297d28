/**
 * What each algorithm means, said as plainly as possible: lists that are scanned in full, and times
 * that are found by asking "and then?" until the answer is yes. Slow, and meant to be read; nothing
 * here is shared with the arithmetic it judges.
 */
import type { Held } from "../algorithms/algorithm.js";
import type { Rule } from "../rule.js";
import type { Count } from "../store.js";
import { HoldOracle, SlotOracle } from "./leaseOracles.js";

/** What one rule remembers of one key. */
export interface Oracle {
  /** The newest time that holds something, as finely as the algorithm keeps it; 0 when none does. */
  readonly newest: number;
  /** Whether this cost fits at this time, if nothing else happens until then; 0 does even in debt. */
  fits(time: number, cost: number): boolean;
  /** Records a cost at `at`, as seen at `now`; a negative one gives back. `id` tells who it is, where it is held. */
  charge(now: number, at: number, cost: number, id?: string): void;
  /** Makes what was charged what it `actual`ly was. */
  settle(now: number, at: number, cost: number, actual: number, id: string): void;
  /** Begins the lease anew; false when it has ended before its time. */
  renew(now: number, at: number, id: string): boolean;
  remaining(time: number): number;
  isEmpty(time: number): boolean;
  held(time: number): Held;
  /** What was counted in a period; undefined where no history is kept. */
  count(now: number, from: number, to: number): Count | undefined;
  /** Whether something that counts at `from` has gone altogether at `to`. */
  forgetsBetween(from: number, to: number): boolean;
}

/** An oracle that may be asked about times up to `lookBackMs` before the newest it was told. */
export function oracleFor(rule: Rule, lookBackMs: number): Oracle {
  const { limit, window, lease } = rule;
  if (lease !== undefined) {
    const { lease: _, ...counted } = rule;
    return new HoldOracle(oracleFor(counted, lookBackMs), window, lease, lookBackMs);
  }
  const cell = Math.ceil(window / (rule.cells ?? 1));
  /** How many milliseconds of [start, start + cell) are in the window that ends at `time`. */
  const inside = (start: number, time: number) =>
    Math.min(cell, Math.max(0, start + cell - 1 - (time - window)));
  switch (rule.algorithm) {
    case "slidingLog":
      return new WindowOracle(limit, window, 1, lookBackMs, (at, time) => (time - at < window ? 1 : 0));
    case "fixedWindow":
      return new WindowOracle(limit, window, window, lookBackMs, (start, time) =>
        time < start + window ? window : 0,
      );
    case "slidingCells":
      return new WindowOracle(
        limit,
        window,
        cell,
        lookBackMs,
        rule.mode === "weighted" ? inside : (start, time) => (inside(start, time) > 0 ? cell : 0),
      );
    case "slidingCounter":
      return new WindowOracle(limit, window, cell, lookBackMs, inside);
    case "tokenBucket":
      return new BucketOracle(limit, window, rule.burst ?? limit);
    case "leakyBucket":
      return new BucketOracle(limit, window, rule.burst ?? 1);
    case "concurrent":
      return new SlotOracle(limit, window, lookBackMs);
  }
}

/** The first time from `now` on at which the test holds, given that it holds from some time on. */
export function firstTime(now: number, holds: (time: number) => boolean): number {
  if (holds(now)) return now;
  let step = 1;
  while (!holds(now + step)) step *= 2;
  let no = now;
  let yes = now + step;
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2);
    if (holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}

/** Costs by the cell of the clock they came in; a log's cells are one millisecond wide. */
class WindowOracle implements Oracle {
  readonly #limit: number;
  readonly #window: number;
  readonly #width: number;
  readonly #lookBackMs: number;
  /** How many milliseconds of the cell that starts at `start` count at `time`. */
  readonly #share: (start: number, time: number) => number;
  #cells: { start: number; cost: number }[] = [];

  constructor(
    limit: number,
    window: number,
    width: number,
    lookBackMs: number,
    share: (start: number, time: number) => number,
  ) {
    this.#limit = limit;
    this.#window = window;
    this.#width = width;
    this.#lookBackMs = lookBackMs;
    this.#share = share;
  }

  get newest(): number {
    let newest = 0;
    for (const { start } of this.#cells) newest = Math.max(newest, start);
    return newest;
  }

  fits(time: number, cost: number): boolean {
    return cost === 0 || this.#load(time) + cost <= this.#limit;
  }

  charge(now: number, at: number, cost: number): void {
    const start = at - (at % this.#width);
    if (this.#share(start, now) === 0) return;
    let cell = this.#cells.find((other) => other.start === start);
    if (cell === undefined) {
      cell = { start, cost: 0 };
      this.#cells.push(cell);
    }
    cell.cost = Math.max(0, cell.cost + cost);
    const earliest = now - this.#lookBackMs;
    this.#cells = this.#cells.filter((other) => other.cost > 0 && this.#share(other.start, earliest) > 0);
  }

  settle(now: number, at: number, cost: number, actual: number): void {
    if (at <= now) this.charge(now, at, actual - cost);
  }

  renew(): boolean {
    return true;
  }

  remaining(time: number): number {
    return Math.max(0, this.#limit - this.#load(time));
  }

  isEmpty(time: number): boolean {
    return this.#load(time) === 0;
  }

  held(time: number): Held {
    const live = this.#cells.filter(({ start }) => this.#share(start, time) > 0);
    if (live.length === 0) return { count: 0, oldestAt: undefined, newestAt: undefined };
    const starts = live.map(({ start }) => start);
    return { count: this.#load(time), oldestAt: Math.min(...starts), newestAt: Math.max(...starts) };
  }

  count(now: number, from: number, to: number): Count {
    const resolutionMs = this.#width;
    const period = { from: from - (from % resolutionMs), to: to - (to % resolutionMs) + resolutionMs - 1 };
    period.from = Math.max(period.from, this.#keptSince(now));
    period.to = Math.min(period.to, now);
    let count = 0;
    for (const { start, cost } of this.#cells) {
      const isAsked = period.from <= start && start <= period.to;
      if (isAsked && this.#share(start, now) > 0) count += cost;
    }
    return { count, ...period, resolutionMs };
  }

  forgetsBetween(from: number, to: number): boolean {
    return this.#cells.some(({ start }) => this.#share(start, from) > 0 && this.#share(start, to) === 0);
  }

  #load(time: number): number {
    let load = 0;
    for (const { start, cost } of this.#cells) {
      load += Math.floor((cost * this.#share(start, time) + this.#width - 1) / this.#width);
    }
    return load;
  }

  /** The start of the first cell that would still count. */
  #keptSince(now: number): number {
    let start = Math.max(0, now - this.#window - this.#width);
    start -= start % this.#width;
    while (this.#share(start, now) === 0) start += this.#width;
    return start;
  }
}

/** Tokens in whole numbers of 1 / window of a token, of which `limit` flow in per millisecond. */
class BucketOracle implements Oracle {
  readonly #limit: number;
  readonly #window: number;
  readonly #full: number;
  #level: number;
  /** When the level was that. */
  #at = 0;
  /** Since when the bucket has not been full. */
  #since = 0;

  constructor(limit: number, window: number, burst: number) {
    this.#limit = limit;
    this.#window = window;
    this.#full = burst * window;
    this.#level = this.#full;
  }

  get newest(): number {
    return this.#level < this.#full ? this.#at : 0;
  }

  fits(time: number, cost: number): boolean {
    return cost === 0 || cost * this.#window <= this.#levelAt(time);
  }

  charge(now: number, at: number, cost: number): void {
    const level = this.#levelAt(now);
    const since = level < this.#full ? this.#since : now;
    let taken = cost * this.#window;
    // A late charge: what would have flowed in since, had it been taken in time, is not missing.
    if (taken > 0) taken = Math.max(0, taken - this.#limit * Math.max(0, since - at));
    // Given back: the bucket has been full since, so there is nothing left to give back.
    else taken = at < since ? 0 : Math.max(taken, level - this.#full);
    if (taken === 0) return;
    this.#level = level - taken;
    this.#at = now;
    this.#since = Math.min(since, at);
  }

  settle(now: number, at: number, cost: number, actual: number): void {
    if (at <= now) this.charge(now, at, actual - cost);
  }

  renew(): boolean {
    return true;
  }

  remaining(time: number): number {
    return Math.max(0, Math.floor(this.#levelAt(time) / this.#window));
  }

  isEmpty(time: number): boolean {
    return this.#levelAt(time) === this.#full;
  }

  held(time: number): Held {
    const missing = this.#full - this.#levelAt(time);
    if (missing === 0) return { count: 0, oldestAt: undefined, newestAt: undefined };
    const count = Math.floor((missing + this.#window - 1) / this.#window);
    return { count, oldestAt: this.#since, newestAt: this.#at };
  }

  count(): undefined {}

  forgetsBetween(from: number, to: number): boolean {
    return this.#levelAt(from) < this.#full && this.#levelAt(to) === this.#full;
  }

  #levelAt(time: number): number {
    return Math.min(this.#full, this.#level + this.#limit * Math.max(0, time - this.#at));
  }
}
