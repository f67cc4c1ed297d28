import type { Algorithm } from "../algorithms/algorithm.js";
import { algorithmOf } from "../algorithms/index.js";
import type { RuleDecision } from "../decision.js";
import type { Settlement, StoredRule, Taker } from "../store.js";

/** A key's place in its table. */
type Slot = number;

/** The slot of every key that is not there: its state stays empty. */
const NOBODY: Slot = 0;
const PAGE_BITS = 7;
export const PAGE_MASK = 2 ** PAGE_BITS - 1;
/** How many old keys a new one looks at: always, and at the cap. */
const CLEANED_PER_KEY = 2;
const SAMPLED_PER_EVICTION = 16;

/** The states of all the keys of one path. Rules that differ in their limit alone share it. */
export class Table {
  readonly pages: unknown[] = [];
  readonly #slots = new Map<string, Slot>();
  readonly #free: Slot[] = [];
  readonly #maxKeys: number;
  #unused: Slot = NOBODY + 1;
  /** Goes round all keys, oldest first, and starts again. */
  #hand = this.#slots.entries();
  /** The key that came last when the table was full. */
  #newcomer = "";

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  find(key: string): Slot {
    return this.#slots.get(key) ?? NOBODY;
  }

  add(key: string, meter: Meter, now: number): Slot {
    for (let n = 0; n < CLEANED_PER_KEY; n++) {
      const old = this.#turnHand();
      if (old !== undefined && meter.resetAfter(old[1], now) === 0) this.delete(old[0], meter);
    }
    if (this.#slots.size >= this.#maxKeys) {
      this.#evict(meter, now);
      this.#newcomer = key;
    }
    const slot = this.#free.pop() ?? this.#unused++;
    if (slot >>> PAGE_BITS === this.pages.length) this.pages.push(meter.newPage());
    this.#slots.set(key, slot);
    return slot;
  }

  delete(key: string, meter: Meter): void {
    const slot = this.find(key);
    if (slot === NOBODY) return;
    meter.clear(slot);
    this.#slots.delete(key);
    this.#free.push(slot);
  }

  /**
   * Drops an expired key or, among those looked at, the one that has used the least of its limit. The hand
   * goes on from where it was, so an expired key is found before the table has been gone round once.
   * The last newcomer is always looked at, so a flood of new keys drops its own and never one
   * that is near its limit; among equals the oldest goes.
   */
  #evict(meter: Meter, now: number): void {
    let victim = "";
    let most = -1;
    for (let n = 0; n < SAMPLED_PER_EVICTION; n++) {
      const old = this.#turnHand();
      if (old === undefined) break;
      const left = meter.resetAfter(old[1], now) === 0 ? Infinity : meter.remaining(old[1], now);
      if (left > most) [victim, most] = [old[0], left];
      if (left === Infinity) break;
    }
    const newcomer = this.find(this.#newcomer);
    if (newcomer !== NOBODY && meter.remaining(newcomer, now) > most) victim = this.#newcomer;
    this.delete(victim, meter);
  }

  #turnHand(): [string, Slot] | undefined {
    let step = this.#hand.next();
    if (step.done) {
      this.#hand = this.#slots.entries();
      step = this.#hand.next();
    }
    return step.done ? undefined : step.value;
  }
}

/** One rule's arithmetic over the table of its keys. */
export class Meter implements Taker {
  readonly table: Table;
  readonly algorithm: Algorithm<unknown, unknown>;
  readonly params: unknown;
  readonly rule: StoredRule;
  readonly clock: () => number;

  constructor(rule: StoredRule, table: Table, clock: () => number) {
    this.rule = rule;
    this.clock = clock;
    this.table = table;
    this.algorithm = algorithmOf(rule);
    this.params = this.algorithm.prepare(rule);
    if (table.pages.length === 0) table.pages.push(this.newPage());
  }

  newPage(): unknown {
    return this.algorithm.page(this.params, PAGE_MASK + 1);
  }

  page(slot: Slot): unknown {
    return this.table.pages[slot >>> PAGE_BITS];
  }

  /** The time it is for this key: never behind what it has recorded. */
  timeFor(slot: Slot, now: number): number {
    const latest = this.algorithm.latest(this.params, this.page(slot), slot & PAGE_MASK);
    return Math.max(now, latest);
  }

  remaining(slot: Slot, now: number): number {
    return this.algorithm.remaining(this.params, this.page(slot), slot & PAGE_MASK, now);
  }

  /** What the rule says to a cost and, with `commit`, charges it where it fits. */
  decide(key: string, cost: number, commit: boolean, now: number = this.clock(), id?: string): RuleDecision {
    const { algorithm, params, rule } = this;
    let slot = this.table.find(key);
    const page = this.page(slot);
    const at = Math.max(now, algorithm.latest(params, page, slot & PAGE_MASK));
    let remaining = algorithm.remaining(params, page, slot & PAGE_MASK, at);
    const allowed = cost <= remaining;
    let retryAfterMs = 0;
    if (!allowed) {
      retryAfterMs = algorithm.wait(params, page, slot & PAGE_MASK, at, cost) + (at - now);
    } else if (commit) {
      slot = this.charge(slot, key, at, at, cost, id, true);
      remaining -= cost;
    }
    const resetAfterMs = this.resetAfter(slot, now);
    return { rule: rule.name, allowed, limit: rule.limit, remaining, retryAfterMs, resetAfterMs, at };
  }

  /** Charges the key, giving it a slot where it has none, and tells its slot. */
  charge(
    slot: Slot,
    key: string,
    now: number,
    at: number,
    cost: number,
    id: string | undefined,
    isChecked?: boolean,
  ): Slot {
    if (slot === NOBODY && cost <= 0) return slot;
    const own = slot === NOBODY ? this.table.add(key, this, now) : slot;
    this.algorithm.charge(this.params, this.page(own), own & PAGE_MASK, now, at, cost, id, isChecked);
    return own;
  }

  /** False when a lease was to begin anew that has ended. */
  settle(now: number, { key, at, cost, actual, id }: Settlement): boolean {
    const { settle } = this.algorithm;
    const slot = this.table.find(key);
    const time = this.timeFor(slot, now);
    if (settle && id) {
      const own = slot === NOBODY && actual ? this.table.add(key, this, time) : slot;
      return settle(this.params, this.page(own), own & PAGE_MASK, time, at, id, actual);
    }
    // Later than anything the key holds, after the clock stepped back: the reservation is forgotten.
    if (at <= time && actual !== undefined) this.charge(slot, key, time, at, actual - cost, id);
    return true;
  }

  clear(slot: Slot): void {
    this.algorithm.clear(this.params, this.page(slot), slot & PAGE_MASK);
  }

  /** How long until the key holds nothing more. */
  resetAfter(slot: Slot, now: number): number {
    const left = this.algorithm.expiresAt(this.params, this.page(slot), slot & PAGE_MASK) - now;
    return Math.max(0, left);
  }
}
