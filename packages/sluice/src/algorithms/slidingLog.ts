/**
 * Sliding log: remembers when each admitted request came.
 *
 * Guarantee: exact. At most `limit` in any window, and never a refusal while there is room.
 * Cost: 4 bytes per admitted request while all costs are 1, 12 with weights (where requests of one
 * millisecond share an entry), in arrays that grow with use; time O(1) amortised, O(log n) at worst,
 * whatever the limit and the cost. A settlement takes O(entries since its time).
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

interface LogRule {
  readonly limit: number;
  readonly window: number;
  /** Whether times need more than 32 bits to be told apart within two windows. */
  readonly wide: boolean;
}

/** The logs of many keys, each a ring of entries, in arrays of their fields: what a decision reads lies close together. */
interface Logs {
  /** When each entry came: the low 32 bits of it, or all of it where the window is wide. */
  readonly times: (Uint32Array | Float64Array)[];
  /** The cost of all entries up to and including each; undefined while every entry costs 1. */
  readonly sums: (Float64Array | undefined)[];
  /** The place of the oldest entry. */
  readonly head: Uint32Array;
  readonly size: Uint32Array;
  /** The running cost just before the head entry. */
  readonly base: Float64Array;
  readonly newest: Float64Array;
}

/** When an empty log had its last entry. */
const NEVER = -Infinity;
const SMALLEST = 4;
/** So many entries that left the window are looked at one by one. */
const FEW = 16;
const NONE = new Uint32Array(0);
const WIDEST_NARROW_WINDOW = 2 ** 31 - 1;
/** Past this, running costs are counted from zero again, so that they stay exact integers. */
const LARGEST_SUM = 2 ** 52;

export const slidingLog: Algorithm<LogRule, Logs> = {
  prepare: ({ limit, window }: Rule) => ({ limit, window, wide: window > WIDEST_NARROW_WINDOW }),
  page: (_rule, keys) => ({
    times: new Array(keys).fill(NONE),
    sums: new Array(keys).fill(undefined),
    head: new Uint32Array(keys),
    size: new Uint32Array(keys),
    base: new Float64Array(keys),
    newest: new Float64Array(keys).fill(NEVER),
  }),
  clear(_rule, logs, i) {
    empty(logs, i);
    logs.times[i] = NONE;
  },

  latest: (_rule, logs, i) => logs.newest[i],

  remaining: (rule, logs, i, now) => Math.max(0, rule.limit - live(rule, logs, i, now)),

  wait(rule, logs, i, now, cost) {
    if (cost > rule.limit) return Infinity;
    const gone = expired(rule, logs, i, now);
    const over = cost - (rule.limit - costBetween(logs, i, gone, logs.size[i]));
    return rule.window - age(rule, logs, i, entryThatFrees(logs, i, gone, over), now);
  },

  charge(rule, logs, i, now, at, cost, _id, isChecked) {
    if (cost === 0 || now - at >= rule.window) return;
    const { head, size, sums } = logs;
    // A new key was not the last one looked at, where another had to go for it; it has nothing to forget.
    const gone = isChecked ? Math.min(lastExpired, size[i]) : expired(rule, logs, i, now);
    if (sums[i] !== undefined) logs.base[i] = sumBefore(logs, i, gone);
    // Done even where none is gone: whether one is, no processor can guess.
    head[i] = place(logs, i, gone);
    size[i] -= gone;
    if (size[i] * 4 < logs.times[i].length) shrink(rule, logs, i);
    if (cost === 1 && at >= logs.newest[i] && sums[i] === undefined) push(rule, logs, i, at, 0);
    else chargeWeight(rule, logs, i, at, cost);
  },

  expiresAt: (rule, logs, i) => logs.newest[i] + rule.window,

  held(rule, logs, i, now) {
    const count = live(rule, logs, i, now);
    if (count === 0) return { count, oldestAt: undefined, newestAt: undefined };
    const first = entryThatFrees(logs, i, expired(rule, logs, i, now), 1);
    return { count, oldestAt: now - age(rule, logs, i, first, now), newestAt: logs.newest[i] };
  },

  count(rule, logs, i, now, from, to) {
    const start = Math.max(expired(rule, logs, i, now), entriesBefore(rule, logs, i, from));
    return Math.max(0, costBetween(logs, i, start, entriesBefore(rule, logs, i, to + 1)));
  },
  resolutionMs: () => 1,
  coversFrom: (rule, now) => Math.max(0, now - rule.window + 1),
};

/** The place in the ring of the nth entry from the oldest. */
function place(logs: Logs, i: number, n: number): number {
  return (logs.head[i] + n) & (logs.times[i].length - 1);
}

/** How long ago the nth entry came. Right for ages below 2^32, hence within two narrow windows. */
function age(rule: LogRule, logs: Logs, i: number, n: number, now: number): number {
  const times = logs.times[i];
  const time = times[(logs.head[i] + n) & (times.length - 1)];
  return rule.wide ? now - time : (now - time) >>> 0;
}

/** The running cost before the nth entry. */
function sumBefore(logs: Logs, i: number, n: number): number {
  const sums = logs.sums[i];
  if (sums === undefined) return n;
  return n === 0 ? logs.base[i] : sums[place(logs, i, n - 1)];
}

function costBetween(logs: Logs, i: number, start: number, end: number): number {
  return sumBefore(logs, i, end) - sumBefore(logs, i, start);
}

function live(rule: LogRule, logs: Logs, i: number, now: number): number {
  return costBetween(logs, i, expired(rule, logs, i, now), logs.size[i]);
}

/** What `expired` answered last: a charge follows its check, and need not search once more. */
let lastExpired = 0;

/** How many entries have left the window: few, as a rule. */
function expired(rule: LogRule, logs: Logs, i: number, now: number): number {
  let gone = 0;
  if (now - logs.newest[i] >= rule.window) gone = logs.size[i];
  else {
    while (age(rule, logs, i, gone, now) >= rule.window) {
      if (++gone > FEW) {
        gone = manyExpired(rule, logs, i, gone, now);
        break;
      }
    }
  }
  lastExpired = gone;
  return gone;
}

/** The same, found by doubling steps, where so many have left and the newest has not. */
function manyExpired(rule: LogRule, logs: Logs, i: number, least: number, now: number): number {
  const size = logs.size[i];
  let low = least;
  let high = least * 2;
  while (high < size && age(rule, logs, i, high, now) >= rule.window) {
    low = high + 1;
    high *= 2;
  }
  return firstWhere(low, Math.min(high, size - 1), (n) => age(rule, logs, i, n, now) < rule.window);
}

/** The entry with whose leaving at least `over` units have left, counted from the entry `gone`. */
function entryThatFrees(logs: Logs, i: number, gone: number, over: number): number {
  if (logs.sums[i] === undefined) return gone + over - 1;
  const needed = sumBefore(logs, i, gone) + over;
  return firstWhere(gone, logs.size[i] - 1, (n) => sumBefore(logs, i, n + 1) >= needed);
}

/** How many entries came before `time`. The log must hold nothing that left more than a window ago. */
function entriesBefore(rule: LogRule, logs: Logs, i: number, time: number): number {
  const newest = logs.newest[i];
  return firstWhere(0, logs.size[i], (n) => newest - age(rule, logs, i, n, newest) >= time);
}

/** The first n in [low, high] where the test holds; `high` when it holds for none below. */
function firstWhere(low: number, high: number, test: (n: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** To the shortest ring that is at most half full. */
function shrink(rule: LogRule, logs: Logs, i: number): void {
  const size = logs.size[i];
  if (size === 0) empty(logs, i);
  let capacity = SMALLEST;
  while (capacity < size * 2) capacity *= 2;
  if (capacity < logs.times[i].length) resize(rule, logs, i, capacity);
}

/** An empty log counts units again, whatever it held before. */
function empty(logs: Logs, i: number): void {
  logs.sums[i] = undefined;
  logs.head[i] = logs.size[i] = logs.base[i] = 0;
  logs.newest[i] = NEVER;
}

/** A new entry, with its running cost where the log has those. */
function push(rule: LogRule, logs: Logs, i: number, at: number, sum: number): void {
  const { size, times } = logs;
  if (size[i] === times[i].length) resize(rule, logs, i, size[i] * 2 || SMALLEST);
  const sums = logs.sums[i];
  const p = place(logs, i, size[i]);
  times[i][p] = at;
  if (sums !== undefined) sums[p] = sum;
  size[i]++;
  logs.newest[i] = at;
}

/** Charges what is not just one more unit: requests of one millisecond share an entry then. */
function chargeWeight(rule: LogRule, logs: Logs, i: number, at: number, cost: number): void {
  const sums = logs.sums[i] ?? toSums(rule, logs, i);
  const newest = logs.newest[i];
  if (cost < 0 || at < newest) adjust(rule, logs, i, at, cost);
  else if (at === newest) sums[place(logs, i, logs.size[i] - 1)] += cost;
  else push(rule, logs, i, at, sumBefore(logs, i, logs.size[i]) + cost);
  if (logs.base[i] > LARGEST_SUM) {
    shiftSums(logs, i, 0, -logs.base[i]);
    logs.base[i] = 0;
  }
}

/** Changes the cost recorded at a past time: an entry's, down to zero, or a new one's. */
function adjust(rule: LogRule, logs: Logs, i: number, at: number, cost: number): void {
  const n = entriesBefore(rule, logs, i, at);
  if (entriesBefore(rule, logs, i, at + 1) > n) {
    shiftSums(logs, i, n, Math.max(cost, -costBetween(logs, i, n, n + 1)));
  } else if (cost > 0) {
    insert(rule, logs, i, n, at, cost);
  }
  while (logs.size[i] > 0 && costBetween(logs, i, logs.size[i] - 1, logs.size[i]) === 0) {
    logs.size[i]--;
    if (logs.size[i] > 0) logs.newest[i] -= age(rule, logs, i, logs.size[i] - 1, logs.newest[i]);
  }
  if (logs.size[i] === 0) empty(logs, i);
}

/** Makes room for an entry before the nth, moving the later ones up. */
function insert(rule: LogRule, logs: Logs, i: number, n: number, at: number, cost: number): void {
  const newest = logs.newest[i];
  push(rule, logs, i, at, sumBefore(logs, i, logs.size[i]) + cost);
  logs.newest[i] = newest;
  const times = logs.times[i];
  const sums = logs.sums[i] as Float64Array;
  const before = sumBefore(logs, i, n);
  for (let m = logs.size[i] - 1; m > n; m--) {
    const to = place(logs, i, m);
    const from = place(logs, i, m - 1);
    times[to] = times[from];
    sums[to] = sums[from] + cost;
  }
  times[place(logs, i, n)] = at;
  sums[place(logs, i, n)] = before + cost;
}

/** Adds to the running costs from the nth entry on. */
function shiftSums(logs: Logs, i: number, n: number, difference: number): void {
  const sums = logs.sums[i] as Float64Array;
  for (let m = n; m < logs.size[i]; m++) sums[place(logs, i, m)] += difference;
}

/** From one entry per request to one per millisecond, each with a running cost. */
function toSums(rule: LogRule, logs: Logs, i: number): Float64Array {
  const times = logs.times[i];
  const newest = logs.newest[i];
  const sums = new Float64Array(times.length);
  let kept = 0;
  for (let n = 0; n < logs.size[i]; n++) {
    const sameAsLast = kept > 0 && age(rule, logs, i, n, newest) === age(rule, logs, i, kept - 1, newest);
    if (!sameAsLast) kept++;
    const p = place(logs, i, kept - 1);
    times[p] = times[place(logs, i, n)];
    sums[p] = n + 1;
  }
  logs.sums[i] = sums;
  logs.size[i] = kept;
  return sums;
}

function resize(rule: LogRule, logs: Logs, i: number, capacity: number): void {
  const { times, sums } = logs;
  const old = sums[i];
  if (old !== undefined) sums[i] = unrolled(logs, i, old, new Float64Array(capacity));
  times[i] = unrolled(logs, i, times[i], rule.wide ? new Float64Array(capacity) : new Uint32Array(capacity));
  logs.head[i] = 0;
}

/** Copies the entries of a ring, the oldest to the front. */
function unrolled<T extends Uint32Array | Float64Array>(
  logs: Logs,
  i: number,
  ring: Uint32Array | Float64Array,
  copy: T,
): T {
  for (let n = 0; n < logs.size[i]; n++) copy[n] = ring[place(logs, i, n)];
  return copy;
}
