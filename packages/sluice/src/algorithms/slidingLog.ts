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

/** The log of one key: a ring of entries, oldest at `head`. */
class Log {
  /** When each entry came: the low 32 bits of it, or all of it where the window is wide. */
  times: Uint32Array | Float64Array;
  /** The cost of all entries up to and including each; undefined while every entry costs 1. */
  sums: Float64Array | undefined = undefined;
  head = 0;
  size = 0;
  /** The running cost just before the head entry. */
  base = 0;
  newest = NEVER;

  constructor(wide: boolean) {
    this.times = wide ? new Float64Array(SMALLEST) : new Uint32Array(SMALLEST);
  }
}

/** When an empty log had its last entry. */
const NEVER = -Infinity;
const SMALLEST = 4;
const WIDEST_NARROW_WINDOW = 2 ** 31 - 1;
/** Past this, running costs are counted from zero again, so that they stay exact integers. */
const LARGEST_SUM = 2 ** 52;

export const slidingLog: Algorithm<LogRule, (Log | undefined)[]> = {
  prepare: ({ limit, window }: Rule) => ({ limit, window, wide: window > WIDEST_NARROW_WINDOW }),
  page: (_rule, keys) => new Array(keys).fill(undefined),
  clear(_rule, page, i) {
    page[i] = undefined;
  },

  latest(_rule, page, i) {
    const log = page[i];
    return log === undefined ? 0 : log.newest;
  },

  remaining(rule, page, i, now) {
    const log = page[i];
    return log === undefined ? rule.limit : Math.max(0, rule.limit - live(rule, log, now));
  },

  wait(rule, page, i, now, cost) {
    const log = page[i];
    if (log === undefined || cost > rule.limit) return Infinity;
    const gone = expired(rule, log, now);
    const over = cost - (rule.limit - costBetween(log, gone, log.size));
    return rule.window - age(rule, log, entryThatFrees(log, gone, over), now);
  },

  charge(rule, page, i, now, at, cost) {
    if (cost === 0 || now - at >= rule.window) return;
    page[i] ??= new Log(rule.wide);
    const log = page[i];
    const gone = expired(rule, log, now);
    if (gone > 0) drop(log, gone);
    if (cost === 1 && at >= log.newest && log.sums === undefined) push(log, at);
    else chargeWeight(rule, log, at, cost);
  },

  expiresAt(rule, page, i) {
    const log = page[i];
    return log === undefined ? 0 : log.newest + rule.window;
  },

  held(rule, page, i, now) {
    const log = page[i];
    const count = log === undefined ? 0 : live(rule, log, now);
    if (log === undefined || count === 0) return { count: 0, oldestAt: undefined, newestAt: undefined };
    const first = entryThatFrees(log, expired(rule, log, now), 1);
    return { count, oldestAt: now - age(rule, log, first, now), newestAt: log.newest };
  },

  count(rule, page, i, now, from, to) {
    const log = page[i];
    if (log === undefined) return 0;
    const start = Math.max(expired(rule, log, now), entriesBefore(rule, log, from));
    const end = entriesBefore(rule, log, to + 1);
    return end <= start ? 0 : costBetween(log, start, end);
  },
  resolutionMs: () => 1,
  coversFrom: (rule, now) => Math.max(0, now - rule.window + 1),
};

/** The place in the ring of the nth entry from the oldest. */
function place(log: Log, n: number): number {
  return (log.head + n) & (log.times.length - 1);
}

/** How long ago the nth entry came. Right for ages below 2^32, hence within two narrow windows. */
function age(rule: LogRule, log: Log, n: number, now: number): number {
  const since = now - log.times[place(log, n)];
  return rule.wide ? since : since >>> 0;
}

/** The cost of all entries before the nth. */
function costBefore(log: Log, n: number): number {
  if (log.sums === undefined) return n;
  return n === 0 ? 0 : log.sums[place(log, n - 1)] - log.base;
}

function costBetween(log: Log, start: number, end: number): number {
  return costBefore(log, end) - costBefore(log, start);
}

function live(rule: LogRule, log: Log, now: number): number {
  const gone = expired(rule, log, now);
  return log.sums === undefined ? log.size - gone : costBetween(log, gone, log.size);
}

/** How many entries have left the window: few, as a rule. */
function expired(rule: LogRule, log: Log, now: number): number {
  if (now - log.newest >= rule.window) return log.size;
  let gone = 0;
  while (age(rule, log, gone, now) >= rule.window) if (++gone > 3) return manyExpired(rule, log, gone, now);
  return gone;
}

/** The same, found by doubling steps, where so many have left and the newest has not. */
function manyExpired(rule: LogRule, log: Log, least: number, now: number): number {
  let low = least;
  let high = least * 2;
  while (high < log.size && age(rule, log, high, now) >= rule.window) {
    low = high + 1;
    high *= 2;
  }
  return firstWhere(low, Math.min(high, log.size - 1), (n) => age(rule, log, n, now) < rule.window);
}

/** The entry with whose leaving at least `over` units have left, counted from the entry `gone`. */
function entryThatFrees(log: Log, gone: number, over: number): number {
  if (log.sums === undefined) return gone + over - 1;
  const needed = costBefore(log, gone) + over;
  return firstWhere(gone, log.size - 1, (n) => costBefore(log, n + 1) >= needed);
}

/** How many entries came before `time`. The log must hold nothing that left more than a window ago. */
function entriesBefore(rule: LogRule, log: Log, time: number): number {
  return firstWhere(0, log.size, (n) => log.newest - age(rule, log, n, log.newest) >= time);
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

/** Forgets the oldest entries. */
function drop(log: Log, gone: number): void {
  if (log.sums !== undefined) log.base = log.sums[place(log, gone - 1)];
  log.head = place(log, gone);
  log.size -= gone;
  if (log.size * 4 <= log.times.length) shrink(log);
}

/** To the shortest ring that is at most half full. */
function shrink(log: Log): void {
  if (log.size === 0) empty(log);
  let capacity = SMALLEST;
  while (capacity < log.size * 2) capacity *= 2;
  if (capacity < log.times.length) resize(log, capacity);
}

/** An empty log counts units again, whatever it held before. */
function empty(log: Log): void {
  log.sums = undefined;
  log.head = log.size = log.base = 0;
  log.newest = NEVER;
}

/** A new entry, whose running cost is up to the caller. */
function push(log: Log, at: number): void {
  if (log.size === log.times.length) resize(log, log.size * 2);
  log.times[place(log, log.size)] = at;
  log.size++;
  log.newest = at;
}

/** Charges what is not just one more unit: requests of one millisecond share an entry then. */
function chargeWeight(rule: LogRule, log: Log, at: number, cost: number): void {
  const sums = log.sums ?? toSums(rule, log);
  if (cost < 0 || at < log.newest) adjust(rule, log, at, cost);
  else if (log.size > 0 && at === log.newest) sums[place(log, log.size - 1)] += cost;
  else pushWeight(log, at, cost);
  if (log.base > LARGEST_SUM) {
    shiftSums(log, 0, -log.base);
    log.base = 0;
  }
}

function pushWeight(log: Log, at: number, cost: number): void {
  const before = costBefore(log, log.size);
  push(log, at);
  (log.sums as Float64Array)[place(log, log.size - 1)] = log.base + before + cost;
}

/** Changes the cost recorded at a past time: an entry's, down to zero, or a new one's. */
function adjust(rule: LogRule, log: Log, at: number, cost: number): void {
  const n = entriesBefore(rule, log, at);
  const found = n < log.size && entriesBefore(rule, log, at + 1) > n;
  if (found) {
    shiftSums(log, n, Math.max(cost, -costBetween(log, n, n + 1)));
  } else if (cost > 0) {
    insert(log, n, at, cost);
  }
  while (log.size > 0 && costBetween(log, log.size - 1, log.size) === 0) {
    log.size--;
    if (log.size > 0) log.newest -= age(rule, log, log.size - 1, log.newest);
  }
  if (log.size === 0) empty(log);
}

/** Makes room for an entry before the nth, moving the later ones up. */
function insert(log: Log, n: number, at: number, cost: number): void {
  const { newest } = log;
  pushWeight(log, at, cost);
  log.newest = newest;
  const sums = log.sums as Float64Array;
  const before = costBefore(log, n);
  for (let m = log.size - 1; m > n; m--) {
    log.times[place(log, m)] = log.times[place(log, m - 1)];
    sums[place(log, m)] = sums[place(log, m - 1)] + cost;
  }
  log.times[place(log, n)] = at;
  sums[place(log, n)] = log.base + before + cost;
}

/** Adds to the running costs from the nth entry on. */
function shiftSums(log: Log, n: number, difference: number): void {
  const sums = log.sums as Float64Array;
  for (let m = n; m < log.size; m++) sums[place(log, m)] += difference;
}

/** From one entry per request to one per millisecond, each with a running cost. */
function toSums(rule: LogRule, log: Log): Float64Array {
  const { size, newest } = log;
  const sums = new Float64Array(log.times.length);
  let kept = 0;
  for (let n = 0; n < size; n++) {
    const sameAsLast = kept > 0 && age(rule, log, n, newest) === age(rule, log, kept - 1, newest);
    if (!sameAsLast) kept++;
    const p = place(log, kept - 1);
    log.times[p] = log.times[place(log, n)];
    sums[p] = n + 1;
  }
  log.sums = sums;
  log.size = kept;
  log.base = 0;
  return sums;
}

function resize(log: Log, capacity: number): void {
  const times = log.times instanceof Uint32Array ? new Uint32Array(capacity) : new Float64Array(capacity);
  const sums = log.sums && new Float64Array(capacity);
  for (let n = 0; n < log.size; n++) {
    const p = place(log, n);
    times[n] = log.times[p];
    if (sums !== undefined && log.sums !== undefined) sums[n] = log.sums[p];
  }
  log.times = times;
  log.sums = sums;
  log.head = 0;
}
