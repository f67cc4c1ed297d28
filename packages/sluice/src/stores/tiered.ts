import type { RuleDecision, RuleStatus } from "../decision.js";
import { checkNames, SluiceError, show, wholeNumber } from "../errors.js";
import type {
  Charge,
  Count,
  Entry as LogEntry,
  MaybePromise,
  Settlement,
  Store,
  StoredRule,
} from "../store.js";
import { systemTiming, type Timing } from "./deadlines.js";
import { Denials } from "./tiers/denials.js";
import { type Entry, Group } from "./tiers/group.js";
import { enforced } from "./tiers/leasing.js";
import { Questions } from "./tiers/questions.js";

export interface TieredOptions {
  /**
   * Whether hot keys take many permits in one call and spend them here: off unless told. Then every
   * process that shares these limits must say so too.
   */
  readonly leases?: boolean;
  /** For how long a refusal is believed without asking: 1000 unless told. */
  readonly staleMs?: number;
  /** Of how many keys of one limiter something is known here: 100,000 unless told. */
  readonly maxKeys?: number;
  /** Milliseconds that only go forward, for tests. */
  readonly clock?: () => number;
}

const MOST_KEYS = 10_000_000;

/**
 * The remote store with a local tier in front. A key that was refused is refused here, without asking,
 * for costs that cannot fit before then; `retryAfterMs` stays true, and only a reset or settlement by
 * another process is heard of late, by `staleMs` at most. With `leases`, hot keys are decided here:
 * never over the limit, as docs/tiers.md proves, and exact logs count for 0.4% longer than their window.
 */
export function tiered(remote: Store, options: TieredOptions = {}): Store {
  const { clock } = options;
  if (clock !== undefined && typeof clock !== "function") {
    refuse(`clock must be a function that returns milliseconds; got ${show(clock)}.`);
  }
  return tieredOn(clock === undefined ? systemTiming : { ...systemTiming, now: clock }, remote, options);
}

/** The same, on time that a simulation sets. */
export function tieredOn(timing: Timing, remote: Store, options: TieredOptions): Store {
  checkNames("INVALID_OPTION", "tiered", options, ["leases", "staleMs", "maxKeys", "clock"]);
  const { leases = false, staleMs = 1000, maxKeys = 100_000 } = options;
  if (typeof remote?.decide !== "function") refuse(`tiered takes a store first; got ${show(remote)}.`);
  if (typeof leases !== "boolean") refuse(`leases must be true or false; got ${show(leases)}.`);
  wholeNumber("INVALID_OPTION", "staleMs", staleMs, 1);
  wholeNumber("INVALID_OPTION", "maxKeys", maxKeys, 1, MOST_KEYS);
  return new TieredStore(timing, remote, { leases, staleMs, maxKeys });
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_OPTION", message);
}

class TieredStore implements Store {
  readonly sync = false;
  readonly entries?: NonNullable<Store["entries"]>;
  readonly #timing: Timing;
  readonly #remote: Store;
  readonly #options: Required<Omit<TieredOptions, "clock">>;
  readonly #questions: Questions;
  readonly #enforced = new WeakMap<StoredRule, StoredRule>();
  readonly #groups = new WeakMap<StoredRule, Group[]>();
  /** By the paths of their rules: limiters of one name share their counts. */
  readonly #groupsAt = new Map<string, Set<Group>>();
  #lastGroup: Group | undefined;

  constructor(timing: Timing, remote: Store, options: Required<Omit<TieredOptions, "clock">>) {
    this.#timing = timing;
    this.#remote = remote;
    this.#options = options;
    this.#questions = new Questions(
      {
        decide: (charges, commit) => remote.decide(this.#atRemote(charges), commit),
        settle: (settlements) => remote.settle(this.#atRemote(settlements)),
        answer: (entry, cost, now) => this.#answer(entry, cost, true, now),
        remember: (entry, cost, decisions, askedAt) => this.#remember(entry, cost, decisions, askedAt),
      },
      timing,
    );
    if (remote.entries !== undefined) {
      this.entries = (charge, from, to, most) => {
        const [there] = this.#atRemote([charge]);
        return remote.entries?.(there, from, to, most) as MaybePromise<readonly LogEntry[]>;
      };
    }
  }

  decide(charges: readonly Charge[], commit: boolean): MaybePromise<readonly RuleDecision[]> {
    const cost = commonCost(charges);
    if (cost === 0) return this.#remote.decide(this.#atRemote(charges), commit);
    const now = this.#timing.now();
    const group = this.#groupOf(charges);
    let entry = group.find(charges);
    if (commit && group.leaseMs > 0) {
      entry ??= this.#add(group, charges);
      entry.demand.add(cost, now, group.leaseMs);
    }
    if (entry !== undefined) {
      const decisions = this.#answer(entry, cost, commit, now);
      if (decisions !== undefined) return decisions;
      const isHot = group.leaseMs > 0 && (entry.isAsking || entry.demand.isHot);
      if (isHot && commit) return this.#questions.ask(group, entry, charges, cost);
    }
    return this.#ask(group, charges, cost, commit, now);
  }

  settle(settlements: readonly Settlement[]): MaybePromise<boolean> {
    for (const group of this.#groupsOf(settlements)) group.forgetRefusals(settlements);
    return this.#remote.settle(this.#atRemote(settlements));
  }

  status(charges: readonly Charge[]): MaybePromise<readonly RuleStatus[]> {
    return this.#remote.status(this.#atRemote(charges));
  }

  count(charges: readonly Charge[], from: number, to: number): MaybePromise<readonly (Count | undefined)[]> {
    return this.#remote.count(this.#atRemote(charges), from, to);
  }

  reset(charges: readonly Charge[]): MaybePromise<void> {
    for (const group of this.#groupsOf(charges)) group.forget(charges);
    return this.#remote.reset(this.#atRemote(charges));
  }

  /** Gives back what is leased, and closes the remote as well. */
  async close(): Promise<void> {
    const released: Promise<void>[] = [];
    for (const groups of this.#groupsAt.values()) {
      for (const group of groups) {
        for (const entry of group.entries()) {
          if (entry.lease !== undefined) released.push(this.#questions.release(entry, entry.lease));
        }
      }
    }
    await Promise.all(released);
    await this.#remote.close();
  }

  /** The answer from what is known here: a lease, a refusal, or that the key is full just now. */
  #answer(entry: Entry, cost: number, commit: boolean, now: number): readonly RuleDecision[] | undefined {
    const { lease } = entry;
    if (lease?.covers(cost, now)) {
      return commit ? lease.spend(cost, now) : lease.answer(lease.units, now);
    }
    const denial = entry.denials?.find(cost, now);
    if (denial !== undefined) return denial;
    return now < entry.fullUntil ? whileFull(entry, cost, now) : undefined;
  }

  async #ask(
    group: Group,
    charges: readonly Charge[],
    cost: number,
    commit: boolean,
    askedAt: number,
  ): Promise<readonly RuleDecision[]> {
    const { changes } = group;
    const decisions = await this.#remote.decide(this.#atRemote(charges), commit);
    if (
      changes === group.changes &&
      decisions.some(({ allowed, degraded }) => !allowed && degraded === undefined)
    ) {
      const entry = group.find(charges) ?? this.#add(group, charges);
      this.#remember(entry, cost, decisions, askedAt);
    }
    return decisions;
  }

  #remember(entry: Entry, cost: number, decisions: readonly RuleDecision[], askedAt: number): void {
    entry.denials ??= new Denials();
    entry.denials.add(cost, decisions, askedAt, this.#timing.now(), this.#options.staleMs);
  }

  #add(group: Group, charges: readonly Charge[]): Entry {
    return group.add(charges, (dropped) => {
      if (dropped.lease !== undefined) void this.#questions.release(dropped, dropped.lease);
    });
  }

  /** The same, by the rules that the remote enforces. */
  #atRemote<T extends Charge>(charges: readonly T[]): readonly T[] {
    if (!this.#options.leases) return charges;
    return charges.map((charge) => {
      let rule = this.#enforced.get(charge.rule);
      if (rule === undefined) {
        rule = enforced(charge.rule);
        this.#enforced.set(charge.rule, rule);
      }
      return { ...charge, rule };
    });
  }

  #groupOf(charges: readonly Charge[]): Group {
    if (this.#lastGroup?.isOf(charges)) return this.#lastGroup;
    const [{ rule }] = charges;
    const known = this.#groups.get(rule) ?? [];
    this.#groups.set(rule, known);
    let group = known.find((each) => each.isOf(charges));
    if (group === undefined) {
      const rules = charges.map((charge) => charge.rule);
      group = new Group(rules, this.#options.leases, this.#options.maxKeys);
      known.push(group);
      for (const { path } of rules) {
        const groups = this.#groupsAt.get(path) ?? new Set();
        this.#groupsAt.set(path, groups.add(group));
      }
    }
    this.#lastGroup = group;
    return group;
  }

  #groupsOf(charges: readonly Charge[]): Set<Group> {
    const groups = new Set<Group>();
    for (const { rule } of charges) {
      for (const group of this.#groupsAt.get(rule.path) ?? []) groups.add(group);
    }
    return groups;
  }
}

/** The cost of all charges of a call; 0 where they differ or some only look: nothing here is known of these. */
function commonCost(charges: readonly Charge[]): number {
  const [{ cost }] = charges;
  for (const charge of charges) if (charge.cost !== cost || charge.look === true) return 0;
  return cost;
}

/** Refused by the rules that had less left than this, until the key is asked for again. */
function whileFull(entry: Entry, cost: number, now: number): readonly RuleDecision[] | undefined {
  if (entry.full.every(({ remaining }) => remaining >= cost)) return undefined;
  const retryAfterMs = Math.max(1, Math.ceil(entry.fullUntil - now));
  return entry.full.map((decision) =>
    decision.remaining < cost
      ? { ...decision, allowed: false, retryAfterMs }
      : { ...decision, allowed: true, retryAfterMs: 0 },
  );
}
