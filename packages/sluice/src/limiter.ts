import { combine, type Decision, type RuleDecision, type RuleStatus } from "./decision.js";
import { SluiceError, show, wholeNumber } from "./errors.js";
import { type Key, keyFor } from "./key.js";
import { Reservation } from "./reservation.js";
import { capacity, checkName, checkRule, type Rule, type RuleInput } from "./rule.js";
import type { Charge, Count, Store, StoredRule } from "./store.js";
import { memoryStore } from "./stores/memory.js";
import { type AcquireOptions, WaitingLines } from "./waiting.js";

export interface LimiterOptions {
  /** One rule or several: all must allow, and all are charged or none. */
  readonly rules: RuleInput | readonly RuleInput[];
  /** Where counts are kept: in this process unless told. */
  readonly store?: Store;
  /** Limiters of one name on one store share their counts. */
  readonly name?: string;
  /** How many calls of `acquire` may wait at a time, over all keys: 10,000 unless told. */
  readonly maxWaiting?: number;
}

export interface Limiter {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** Decides at once: charges all rules, or none when one denies. */
  tryAcquire(key: Key, cost?: number): Promise<Decision>;
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
  reserve(key: Key, cost: number): Promise<Reservation>;
  /** What each rule holds for the key. */
  status(key: Key): Promise<readonly RuleStatus[]>;
  /** What was counted in a period, both ends included, by the rule that tells it best. */
  count(key: Key, period?: { readonly from?: number; readonly to?: number }): Promise<Count>;
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

/** The paths that unnamed limiters use, by store: two of them must not share counts unawares. */
const unnamedPaths = new WeakMap<Store, Set<string>>();

class RuleLimiter implements Limiter {
  readonly name: string;
  readonly rules: readonly StoredRule[];
  readonly #store: Store;
  readonly #ownsStore: boolean;
  readonly #lines: WaitingLines;
  #closed = false;

  constructor(options: LimiterOptions) {
    const { store = memoryStore(), maxWaiting = 10_000 } = options;
    this.name = checkName("A limiter's name", options.name ?? "default");
    this.rules = storedRules(this.name, options.rules);
    this.#store = store;
    this.#ownsStore = options.store === undefined;
    this.#lines = new WaitingLines(store, wholeNumber("INVALID_OPTION", "maxWaiting", maxWaiting, 0));
    if (options.name === undefined) claimUnnamed(store, this.rules);
  }

  async tryAcquire(key: Key, cost = 1): Promise<Decision> {
    return combine(await this.#store.decide(this.#charges(key, cost), true));
  }

  tryAcquireSync(key: Key, cost = 1): Decision {
    if (!this.#store.sync) {
      throw new SluiceError(
        "NOT_SYNC",
        "This limiter's store is remote; use `await limiter.tryAcquire(key)`.",
      );
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
          `A cost of ${cost} can never fit rule "${rule.name}", which admits at most ${capacity(rule)} at once; split the work or raise the rule.`,
        );
      }
    }
    return combine(await this.#lines.wait(lineOf(charges), charges, options));
  }

  async peek(key: Key, cost = 1): Promise<Decision> {
    return combine(await this.#store.decide(this.#charges(key, cost), false));
  }

  async reserve(key: Key, cost: number): Promise<Reservation> {
    const charges = this.#charges(key, cost);
    const decision = combine(await this.#store.decide(charges, true));
    return new Reservation(decision, cost, async (difference) => {
      const at = decision.rules.map((rule) => rule.at);
      await this.#store.settle(
        charges.map((charge, c) => ({ ...charge, cost: difference, at: at[c] as number })),
      );
      if (difference < 0) this.#lines.wake(lineOf(charges));
    });
  }

  async status(key: Key): Promise<readonly RuleStatus[]> {
    return this.#store.status(this.#charges(key, 0));
  }

  async count(key: Key, period: { readonly from?: number; readonly to?: number } = {}): Promise<Count> {
    const from = wholeNumber("INVALID_OPTION", "count's from", period.from ?? 0, 0);
    const to = wholeNumber("INVALID_OPTION", "count's to", period.to ?? Number.MAX_SAFE_INTEGER, from);
    const counts = await Promise.all(
      this.#charges(key, 0).map((charge) => this.#store.count(charge, from, to)),
    );
    const best = counts.filter((count) => count !== undefined).sort(byCoverage)[0];
    if (best !== undefined) return best;
    throw new SluiceError(
      "NOT_COUNTED",
      `Limiter "${this.name}" has only buckets, which keep no history; add a slidingLog or slidingCells rule to count.`,
    );
  }

  async reset(key: Key): Promise<void> {
    const charges = this.#charges(key, 0);
    await this.#store.reset(charges);
    this.#lines.wake(lineOf(charges));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#lines.close();
    if (this.#ownsStore) await this.#store.close();
  }

  /** Every call becomes a list of charges, one per rule, each under its own key. */
  #charges(key: Key, cost: number): Charge[] {
    if (this.#closed) throw new SluiceError("CLOSED", `Limiter "${this.name}" is closed; make a new one.`);
    wholeNumber("INVALID_COST", "A cost", cost, 0);
    const charges = new Array<Charge>(this.rules.length);
    for (let r = 0; r < charges.length; r++) {
      charges[r] = { rule: this.rules[r], key: keyFor(this.rules[r], key), cost };
    }
    return charges;
  }
}

function storedRules(limiter: string, input: RuleInput | readonly RuleInput[]): readonly StoredRule[] {
  const rules = (Array.isArray(input) ? input : [input]).map(checkRule);
  if (rules.length === 0)
    throw new SluiceError("INVALID_RULE", "A limiter needs at least one rule; got none.");
  const names = new Set<string>();
  for (const { name } of rules) {
    if (names.has(name)) {
      throw new SluiceError("INVALID_RULE", `Two rules are named "${name}"; give each its own \`name\`.`);
    }
    names.add(name);
  }
  return rules.map((rule) => Object.freeze({ ...rule, path: pathOf(limiter, rule) }));
}

/** Names hold no slash, so no two paths coincide. The limit is left out: changing it keeps the counts. */
function pathOf(limiter: string, { name, algorithm, window, cells, mode, layout }: Rule): string {
  return [limiter, name, algorithm, window, cells, mode, layout]
    .filter((part) => part !== undefined)
    .join("/");
}

function claimUnnamed(store: Store, rules: readonly StoredRule[]): void {
  const taken = unnamedPaths.get(store) ?? new Set<string>();
  unnamedPaths.set(store, taken);
  for (const { path, name } of rules) {
    if (taken.has(path)) {
      throw new SluiceError(
        "NAME_TAKEN",
        `Two limiters without a name have a rule "${name}" on one store and would share its counts; give each limiter its own \`name\`.`,
      );
    }
    taken.add(path);
  }
}

/** Calls wait in one line when all their charges fall on the same keys. */
function lineOf(charges: readonly Charge[]): string {
  return charges.length === 1
    ? (charges[0] as Charge).key
    : JSON.stringify(charges.map((charge) => charge.key));
}

/** The rule that reaches back furthest, and among those the finest. */
function byCoverage(a: Count, b: Count): number {
  return a.from - b.from || a.resolutionMs - b.resolutionMs;
}
