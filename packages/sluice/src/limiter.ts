import { combine, type Decision, type RuleDecision, type RuleStatus } from "./decision.js";
import { checkNames, SluiceError, show, wholeNumber } from "./errors.js";
import { type Key, keyFor, partitionOf } from "./key.js";
import { Reservation } from "./reservation.js";
import { capacity, checkName, isLease, isSlots, type Rule, type RuleInput } from "./rule.js";
import {
  type Charge,
  type Count,
  type Entry,
  type Store,
  type StoredRule,
  settlementsOf,
  type Taker,
} from "./store.js";
import { storedRules } from "./storedRules.js";
import { memoryStore } from "./stores/memory.js";
import { type AcquireOptions, RECHECK_MS, WaitingLines } from "./waiting.js";

/** What `createLimiter` takes; only `rules` is needed. */
export interface LimiterOptions {
  /** One rule or several: all must allow, and all are charged or none. */
  readonly rules: RuleInput | readonly RuleInput[];
  /** Where counts are kept: in this process unless told. */
  readonly store?: Store;
  /** Limiters of one name on one store share their counts. */
  readonly name?: string;
  /**
   * Which part of record keys keeps a decision's counts together in Redis Cluster: `"org"` spreads them
   * by org. By default all record keys of the limiter are kept on one node; string keys always spread.
   */
  readonly partition?: string;
  /** How many calls of `acquire` may wait at a time, over all keys: 10,000 unless told. */
  readonly maxWaiting?: number;
}

/** Milliseconds since the epoch, both ends included. */
export interface Period {
  readonly from?: number;
  readonly to?: number;
}

/** Names a request where a rule's log keeps names (`layout: "zset"`). */
export interface RequestOptions {
  readonly id?: string;
}

/**
 * One or more rules over a store: all of them must allow, and all are charged or none. A denial is a
 * decision, never an exception; misuse throws a `SluiceError` before anything is charged.
 */
export interface Limiter {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** True when the store is local, so that `tryAcquireSync` works. */
  readonly sync: boolean;
  /** Decides at once: charges all rules, or none when one denies. */
  tryAcquire(key: Key, cost?: number, options?: RequestOptions): Promise<Decision>;
  /** The same without a promise, where the store is local; throws `NOT_SYNC` elsewhere, charging nothing. */
  tryAcquireSync(key: Key, cost?: number): Decision;
  /**
   * Waits its turn: resolves once admitted, first come first served per key. Rejects with `TIMEOUT`,
   * with the signal's reason, with `QUEUE_FULL`, or at once with `NEVER_FITS`; then nothing is charged.
   */
  acquire(key: Key, options?: AcquireOptions): Promise<Decision>;
  /** What `tryAcquire` would answer, charging nothing. */
  peek(key: Key, cost?: number): Promise<Decision>;
  /** Takes a cost now that is settled later, when the real one is known. */
  reserve(key: Key, cost: number, options?: RequestOptions): Promise<Reservation>;
  /** What each rule holds for the key. */
  status(key: Key): Promise<readonly RuleStatus[]>;
  /** What was counted in a period, both ends included, by the rule that tells it best. */
  count(key: Key, period?: Period): Promise<Count>;
  /** The newest requests of a period, oldest first: who and when, for rules with `layout: "zset"` on Redis. */
  entries(key: Key, period?: Period & { readonly most?: number }): Promise<readonly Entry[]>;
  /** Forgets the key. */
  reset(key: Key): Promise<void>;
  /** Rejects those who wait, refuses further calls, and closes the store if the limiter made it. */
  close(): Promise<void>;
}

/** A limiter over one or more rules; bad rules are refused with a `SluiceError` at once. */
export function createLimiter(options: LimiterOptions): Limiter {
  if (typeof options !== "object" || options === null) {
    throw new SluiceError(
      "INVALID_OPTION",
      `createLimiter takes { rules, store?, name? }; got ${show(options)}.`,
    );
  }
  return new RuleLimiter(options);
}

const MOST_ENTRIES = 10_000;
const LONGEST_ID = 256;

/** The paths that unnamed limiters use, by store: two of them must not share counts unawares. */
const unnamedPaths = new WeakMap<Store, Set<string>>();

class RuleLimiter implements Limiter {
  readonly name: string;
  readonly rules: readonly StoredRule[];
  readonly sync: boolean;
  readonly #store: Store;
  readonly #ownsStore: boolean;
  readonly #lines: WaitingLines;
  readonly #partition: string | undefined;
  /** Whether some rule tells requests apart: it keeps each by name, or a lease for each. */
  readonly #named: boolean;
  readonly #unnamed: boolean;
  /** For the commonest limiter: one rule, requests without names, keys without a partition, a local store. */
  readonly #lone: Taker | undefined;
  #closed = false;

  constructor(options: LimiterOptions) {
    checkNames("INVALID_OPTION", "createLimiter", options, [
      "rules",
      "store",
      "name",
      "partition",
      "maxWaiting",
    ] satisfies (keyof LimiterOptions)[]);
    const { store = memoryStore(), maxWaiting = 10_000 } = options;
    this.name = checkName("A limiter's name", options.name ?? "default");
    this.rules = storedRules(this.name, options.rules);
    this.sync = store.sync;
    this.#store = store;
    this.#ownsStore = options.store === undefined;
    this.#partition = options.partition && checkName("A limiter's partition", options.partition);
    this.#named = this.rules.some((rule) => rule.layout === "zset" || isLease(rule));
    const isLone = this.rules.length === 1 && !this.#named && this.#partition === undefined;
    this.#lone = isLone ? store.taker?.(this.rules[0]) : undefined;
    wholeNumber("INVALID_OPTION", "maxWaiting", maxWaiting, 0);
    // Slots held elsewhere come free long before their leases end, and nobody tells.
    const recheckMs = !store.sync && this.rules.some(isLease) ? RECHECK_MS : undefined;
    this.#lines = new WaitingLines(store, maxWaiting, recheckMs);
    this.#unnamed = options.name === undefined;
    if (this.#unnamed) claimUnnamed(store, this.rules);
  }

  async tryAcquire(key: Key, cost = 1, options?: RequestOptions): Promise<Decision> {
    // Waiting for what is there already would take as long as deciding it.
    if (this.sync && options === undefined) return this.tryAcquireSync(key, cost);
    return combine(await this.#store.decide(this.#charges(key, cost, options), true));
  }

  tryAcquireSync(key: Key, cost = 1): Decision {
    if (!this.sync) {
      throw new SluiceError(
        "NOT_SYNC",
        "This limiter's store is remote; use `await limiter.tryAcquire(key)`.",
      );
    }
    if (this.#lone !== undefined) {
      this.#check(cost);
      return combine([this.#lone.decide(keyFor(this.rules[0], key), cost, true)]);
    }
    return combine(this.#store.decide(this.#charges(key, cost), true) as readonly RuleDecision[]);
  }

  async acquire(key: Key, options: AcquireOptions = {}): Promise<Decision> {
    const { cost = 1 } = options;
    const charges = this.#charges(key, cost);
    for (const rule of this.rules) {
      if (cost > capacity(rule)) {
        throw new SluiceError(
          "NEVER_FITS",
          `A cost of ${cost} never fits rule "${rule.name}", which admits at most ${capacity(rule)} at once; split it or raise the rule.`,
        );
      }
    }
    return combine(await this.#lines.wait(charges, options));
  }

  async peek(key: Key, cost = 1): Promise<Decision> {
    return combine(await this.#store.decide(this.#charges(key, cost), false));
  }

  async reserve(key: Key, cost: number, options?: RequestOptions): Promise<Reservation> {
    const charges = this.#charges(key, cost, options, true);
    const decision = combine(await this.#store.decide(charges, true));
    const hasLease = cost > 0 && this.rules.some(isLease);
    return new Reservation(decision, cost, async (actual) => {
      if ((actual ?? cost) === cost && !hasLease) return true;
      const how = ({ rule }: Charge) =>
        actual === undefined ? (isLease(rule) ? {} : undefined) : { actual: isSlots(rule) ? 0 : actual };
      const isHeld = await this.#store.settle(settlementsOf(charges, decision.rules, how));
      if (actual !== undefined && (actual < cost || hasLease)) this.#lines.wake(charges);
      return isHeld;
    });
  }

  async status(key: Key): Promise<readonly RuleStatus[]> {
    return this.#store.status(this.#charges(key, 0));
  }

  async count(key: Key, period: Period = {}): Promise<Count> {
    const { from, to } = checkPeriod(period);
    const counts = await this.#store.count(this.#charges(key, 0), from, to);
    const best = counts.filter((count) => count !== undefined).sort(byCoverage)[0];
    if (best !== undefined) return best;
    throw new SluiceError(
      "NOT_COUNTED",
      `Limiter "${this.name}" has only buckets, which keep no history; add a slidingLog.`,
    );
  }

  async entries(key: Key, period: Period & { readonly most?: number } = {}): Promise<readonly Entry[]> {
    const { from, to } = checkPeriod(period);
    const most = wholeNumber("INVALID_OPTION", "most", period.most ?? 1000, 1, MOST_ENTRIES);
    const charge = this.#charges(key, 0).find(({ rule }) => rule.layout === "zset");
    if (charge === undefined || this.#store.entries === undefined) {
      throw new SluiceError(
        "NOT_COUNTED",
        `Limiter "${this.name}" lists no requests; use slidingLog({ ..., layout: "zset" }) on a redisStore.`,
      );
    }
    return this.#store.entries(charge, from, to, most);
  }

  async reset(key: Key): Promise<void> {
    const charges = this.#charges(key, 0);
    await this.#store.reset(charges);
    this.#lines.wake(charges);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#lines.close();
    if (this.#unnamed) for (const { path } of this.rules) unnamedPaths.get(this.#store)?.delete(path);
    if (this.#ownsStore) await this.#store.close();
  }

  #check(cost: number): void {
    if (this.#closed) throw new SluiceError("CLOSED", `Limiter "${this.name}" is closed; make a new one.`);
    wholeNumber("INVALID_COST", "A cost", cost, 0);
  }

  /** Every call becomes a list of charges, one per rule, each under its own key. */
  #charges(key: Key, cost: number, options?: RequestOptions, holds = false): Charge[] {
    this.#check(cost);
    const partition = typeof key === "string" ? key : partitionOf(this.name, key, this.#partition);
    const id = this.#named ? uniqueId(options?.id) : undefined;
    return this.rules.map((rule) => chargeOf(rule, key, cost, partition, id, holds));
  }
}

/** A window with a lease counts for good what has no id. */
function chargeOf(
  rule: StoredRule,
  key: Key,
  cost: number,
  partition: string,
  id: string | undefined,
  holds: boolean,
): Charge {
  const isHeld = holds || !id || !rule.lease;
  return { rule, key: keyFor(rule, key), cost, partition, id: isHeld ? id : undefined };
}

/** Unique among all processes by 60 random bits, with the caller's own name for the request behind it. */
export function uniqueId(name: unknown = ""): string {
  if (typeof name !== "string" || name.length > LONGEST_ID) {
    throw new SluiceError(
      "INVALID_OPTION",
      `An id must be a string of at most ${LONGEST_ID} characters; got ${show(name)}.`,
    );
  }
  return `${crypto.randomUUID().slice(0, 18)}:${name}`;
}

function claimUnnamed(store: Store, rules: readonly StoredRule[]): void {
  const taken = unnamedPaths.get(store) ?? new Set<string>();
  unnamedPaths.set(store, taken);
  for (const { path, name } of rules) {
    if (taken.has(path)) {
      throw new SluiceError(
        "NAME_TAKEN",
        `Another unnamed limiter counts by rule "${name}" on this store; give each its own \`name\`.`,
      );
    }
    taken.add(path);
  }
}

function checkPeriod({ from = 0, to = Number.MAX_SAFE_INTEGER }: Period): Required<Period> {
  wholeNumber("INVALID_OPTION", "A period's from", from, 0);
  wholeNumber("INVALID_OPTION", "A period's to", to, from);
  return { from, to };
}

/** The rule that reaches back furthest, and among those the finest. */
function byCoverage(a: Count, b: Count): number {
  return a.from - b.from || a.resolutionMs - b.resolutionMs;
}
