import type { Rule } from "../rule.js";

/** What an algorithm tells of a key's state; times are as fine as it keeps them. */
export interface Held {
  readonly count: number;
  readonly oldestAt: number | undefined;
  readonly newestAt: number | undefined;
}

/**
 * An algorithm is arithmetic over the state of one key: no clock, no I/O, no memory of its own.
 * States live in pages of many keys, so that a key costs numbers in an array rather than objects;
 * `(page, i)` is one key's state. A state that was never written, or has expired, counts nothing.
 *
 * `now` never runs behind `latest`: whoever calls sees to that, which is how a clock that steps
 * back grants nothing. Only `charge`, `settle` and `clear` write.
 */
export interface Algorithm<Params, Page> {
  /** What the arithmetic needs of a rule, computed once. */
  prepare(rule: Rule): Params;
  /** Empty states for this many keys. */
  page(params: Params, keys: number): Page;
  /** Makes the state empty again. */
  clear(params: Params, page: Page, i: number): void;
  /** The newest time the state has recorded; 0 when it holds nothing. */
  latest(params: Params, page: Page, i: number): number;
  /** The largest cost that fits now; a cost of 0 always does. */
  remaining(params: Params, page: Page, i: number, now: number): number;
  /** For a cost above `remaining`: how long until it fits, with no other traffic; Infinity when it never does. */
  wait(params: Params, page: Page, i: number, now: number, cost: number): number;
  /**
   * Records a cost at time `at <= now`, unconditionally; a negative one gives back, never below zero.
   * `id` names the request, where the algorithm tells requests apart; with `isChecked`, `remaining` was
   * asked just before, of the same key and `now`: what it found need not be found again.
   */
  charge(
    params: Params,
    page: Page,
    i: number,
    now: number,
    at: number,
    cost: number,
    id?: string,
    isChecked?: boolean,
  ): void;
  /**
   * Where what is charged under an id is held on a lease: lets it go, for what it `actual`ly was at time `at`; or,
   * told no `actual`, begins its lease anew, unless it has ended: then the answer is false. `at` may be later
   * than `now`, of something forgotten or held from before the clock stepped back.
   */
  settle?(
    params: Params,
    page: Page,
    i: number,
    now: number,
    at: number,
    id: string,
    actual: number | undefined,
  ): boolean;
  /** From when on the state counts nothing; 0 when it holds nothing. */
  expiresAt(params: Params, page: Page, i: number): number;
  /** What is counted now. */
  held(params: Params, page: Page, i: number, now: number): Held;
  /** What was counted from `from` to `to`, both included and within what is still held. */
  count(params: Params, page: Page, i: number, now: number, from: number, to: number): number;
  /** How finely `count` can tell times apart; 0 when the algorithm keeps no history. */
  resolutionMs(params: Params): number;
  /** The earliest time that `count` still covers. */
  coversFrom(params: Params, now: number): number;
}
