import type { RuleDecision, RuleStatus } from "../decision.js";
import { SluiceError, show, wholeNumber } from "../errors.js";
import type { Charge, Count, Settlement, Store, StoredRule, Taker } from "../store.js";
import { Meter, PAGE_MASK, Table } from "./table.js";

/** What `memoryStore` takes; nothing is needed. */
export interface MemoryStoreOptions {
  /**
   * How many keys each rule keeps: 1,000,000 unless told. At the cap a new key takes the place of
   * an expired one or, where none is among the 18 it looks at, of the one that has used the least of its limit.
   */
  readonly maxKeys?: number;
  /** Milliseconds since the epoch; fractions are cut off. By default the system's, never stepping back. */
  readonly clock?: () => number;
}

/** How many keys a rule keeps unless told, and at most: V8 cannot hold many more entries in one Map. */
export const USUAL_KEYS = 1_000_000;
const MOST_KEYS = 10_000_000;

/**
 * Keeps all state in this process and answers at once. Exact and atomic, since nothing interrupts
 * it; no timers: each new key pays for looking at two old ones.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { clock = steadyClock, maxKeys = USUAL_KEYS } = options;
  wholeNumber("INVALID_OPTION", "maxKeys", maxKeys, 1, MOST_KEYS);
  if (typeof clock !== "function") refuseClock(clock);
  return new MemoryStore(clock === steadyClock ? clock : checked(clock), maxKeys);
}

/** The last time told, and how far it is ahead of the system's. In an array, where numbers cost no memory. */
const told = new Float64Array(2);

/** The system's clock, but where that steps back this one goes on from where it was. */
export function steadyClock(): number {
  const now = Date.now() + told[1];
  if (now < told[0]) {
    told[1] += told[0] - now;
    return told[0];
  }
  told[0] = now;
  return now;
}

/** The clock in whole milliseconds; one that tells no time would count nothing, or for ever. */
function checked(clock: () => number): () => number {
  return () => {
    const now = Math.floor(clock());
    return now >= 0 && now <= Number.MAX_SAFE_INTEGER ? now : refuseClock(now);
  };
}

function refuseClock(given: unknown): never {
  throw new SluiceError(
    "INVALID_OPTION",
    `clock must be a function that returns milliseconds since the epoch, from 0 to 2^53 - 1; got ${show(given)}.`,
  );
}

class MemoryStore implements Store {
  readonly sync = true;
  readonly #clock: () => number;
  readonly #maxKeys: number;
  readonly #tables = new Map<string, Table>();
  readonly #meters = new WeakMap<StoredRule, Meter>();

  constructor(clock: () => number, maxKeys: number) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
  }

  taker(rule: StoredRule): Taker {
    return this.#meter(rule);
  }

  decide(charges: readonly Charge[], commit: boolean): readonly RuleDecision[] {
    const now = this.#clock();
    const answers = (isLast: boolean) =>
      charges.map(({ rule, key, cost, id, look }) =>
        this.#meter(rule).decide(key, cost, isLast && look !== true, now, id),
      );
    // Where all allow, each is decided again and charged by the path of a lone rule: there is no other.
    const checked = answers(false);
    return commit && checked.every(({ allowed }) => allowed) ? answers(true) : checked;
  }

  settle(settlements: readonly Settlement[]): boolean {
    const now = this.#clock();
    return settlements.map((each) => this.#meter(each.rule).settle(now, each)).every(Boolean);
  }

  status(charges: readonly Charge[]): readonly RuleStatus[] {
    const now = this.#clock();
    return charges.map(({ rule, key }) => statusOf(this.#meter(rule), key, now));
  }

  count(charges: readonly Charge[], from: number, to: number): readonly (Count | undefined)[] {
    const now = this.#clock();
    return charges.map(({ rule, key }) => countOf(this.#meter(rule), key, now, from, to));
  }

  reset(charges: readonly Charge[]): void {
    for (const { rule, key } of charges) {
      const meter = this.#meter(rule);
      meter.table.delete(key, meter);
    }
  }

  close(): void {
    this.#tables.clear();
  }

  #meter(rule: StoredRule): Meter {
    return this.#meters.get(rule) ?? this.#open(rule);
  }

  #open(rule: StoredRule): Meter {
    const table = this.#tables.get(rule.path) ?? new Table(this.#maxKeys);
    this.#tables.set(rule.path, table);
    const meter = new Meter(rule, table, this.#clock);
    this.#meters.set(rule, meter);
    return meter;
  }
}

function statusOf(meter: Meter, key: string, now: number): RuleStatus {
  const { algorithm, params, rule } = meter;
  const slot = meter.table.find(key);
  const at = meter.timeFor(slot, now);
  return {
    rule: rule.name,
    limit: rule.limit,
    remaining: meter.remaining(slot, at),
    resetAfterMs: meter.resetAfter(slot, now),
    ...algorithm.held(params, meter.page(slot), slot & PAGE_MASK, at),
  };
}

/** Undefined where the algorithm keeps no history. */
function countOf(meter: Meter, key: string, now: number, from: number, to: number): Count | undefined {
  const { algorithm, params } = meter;
  const resolutionMs = algorithm.resolutionMs(params);
  if (resolutionMs === 0) return undefined;
  const slot = meter.table.find(key);
  const at = meter.timeFor(slot, now);
  const first = Math.max(algorithm.coversFrom(params, at), from - (from % resolutionMs));
  const last = Math.min(at, to - (to % resolutionMs) + resolutionMs - 1);
  const count =
    first <= last ? algorithm.count(params, meter.page(slot), slot & PAGE_MASK, at, first, last) : 0;
  return { count, from: first, to: last, resolutionMs };
}
