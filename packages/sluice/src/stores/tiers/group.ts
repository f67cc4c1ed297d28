import type { RuleDecision } from "../../decision.js";
import type { Charge, StoredRule } from "../../store.js";
import { Demand } from "./demand.js";
import type { Denials } from "./denials.js";
import type { Lease } from "./lease.js";
import { leaseMsOf } from "./leasing.js";

/** A call that waits for the remote's answer to all of its key. */
export interface Caller {
  readonly charges: readonly Charge[];
  readonly cost: number;
  readonly resolve: (decisions: readonly RuleDecision[] | Promise<readonly RuleDecision[]>) => void;
  readonly reject: (error: unknown) => void;
}

/** What is known here of one key. */
export class Entry {
  denials: Denials | undefined;
  lease: Lease | undefined;
  readonly demand = new Demand();
  /** Those who wait while the remote is asked for this key: one question at a time. */
  callers: Caller[] = [];
  isAsking = false;
  /** How much is asked for at most for those who are expected, by what there was the last time. */
  want = Infinity;
  /** Found full, and not since with plenty left. */
  isFull = false;
  /** For how long a full key is left alone, as a part of a lease's life. */
  pause = 1;
  /** Until then a full key is not asked for again. */
  fullUntil = 0;
  full: readonly RuleDecision[] = [];
  isUsed = false;
  /** Reset: what was charged for it before is forgotten. */
  isForgotten = false;
  refusalsOf: number;

  constructor(refusalsOf: number) {
    this.refusalsOf = refusalsOf;
  }

  forgetRefusals(): void {
    this.denials = undefined;
    this.fullUntil = 0;
  }
}

/** As a part of the limit. */
const LARGEST_LEASE = 1 / 10;

/** How many of the oldest keys are looked at to make room for a new one. */
const SECOND_CHANCES = 8;

/** What is known of the keys of one limiter: those of one list of rules. */
export class Group {
  readonly rules: readonly StoredRule[];
  /** How long a lease over all of these rules lives at most; 0 when they are not leased. */
  readonly leaseMs: number;
  /** The most that one question takes for all who may come. */
  readonly most: number;
  /** Counts up with what this process settles and resets: a refusal asked for before is not believed. */
  changes = 0;
  /** How long the last question for a hot key took. */
  tookMs = 0;
  /** Whether every rule counts by the whole key. */
  readonly #isByWholeKey: boolean;
  readonly #maxKeys: number;
  readonly #entries = new Map<string, Entry>();
  /** Counts up when the refusals of all keys are forgotten. */
  #refusalsOf = 0;

  constructor(rules: readonly StoredRule[], leases: boolean, maxKeys: number) {
    this.rules = rules;
    this.most = Math.floor(Math.min(...rules.map((rule) => rule.limit)) * LARGEST_LEASE);
    this.leaseMs = leases && this.most > 1 ? Math.min(...rules.map(leaseMsOf)) : 0;
    this.#isByWholeKey = rules.every((rule) => rule.by === undefined);
    this.#maxKeys = maxKeys;
  }

  isOf(charges: readonly Charge[]): boolean {
    const { rules } = this;
    if (rules.length !== charges.length) return false;
    for (let r = 0; r < rules.length; r++) if (rules[r] !== charges[r].rule) return false;
    return true;
  }

  find(charges: readonly Charge[]): Entry | undefined {
    const entry = this.#entries.get(nameOf(charges));
    if (entry === undefined) return undefined;
    entry.isUsed = true;
    if (entry.refusalsOf !== this.#refusalsOf) {
      entry.forgetRefusals();
      entry.refusalsOf = this.#refusalsOf;
    }
    return entry;
  }

  /** Makes room by dropping the oldest key that was not used since it was last looked at. */
  add(charges: readonly Charge[], drop: (entry: Entry) => void): Entry {
    for (let n = 0; this.#entries.size >= this.#maxKeys; n++) {
      const [[name, old]] = this.#entries as Iterable<[string, Entry]>;
      this.#entries.delete(name);
      if (n < SECOND_CHANCES && old.isUsed) {
        old.isUsed = false;
        this.#entries.set(name, old);
      } else drop(old);
    }
    const entry = new Entry(this.#refusalsOf);
    this.#entries.set(nameOf(charges), entry);
    return entry;
  }

  entries(): Iterable<Entry> {
    return this.#entries.values();
  }

  /** Something was given back, or charged besides: what was refused may not be any more. */
  forgetRefusals(charges: readonly Charge[]): void {
    this.changes++;
    if (this.#countsApart(charges)) this.#refusalsOf++;
    else this.#entries.get(nameOf([charges[0]]))?.forgetRefusals();
  }

  /** The counts were reset: leases taken before are not to be spent any more, nor given back. */
  forget(charges: readonly Charge[]): void {
    this.changes++;
    if (this.#countsApart(charges)) {
      for (const entry of this.#entries.values()) entry.isForgotten = true;
      this.#entries.clear();
      return;
    }
    const name = nameOf([charges[0]]);
    const entry = this.#entries.get(name);
    if (entry !== undefined) entry.isForgotten = true;
    this.#entries.delete(name);
  }

  /** Whether charges to some parts of a key concern other keys as well. */
  #countsApart(charges: readonly Charge[]): boolean {
    return !this.#isByWholeKey || charges.some((charge) => charge.key !== charges[0].key);
  }
}

/** One text for the keys of a call: their own where all are the same, and never that of another call. */
function nameOf(charges: readonly Charge[]): string {
  const [{ key }] = charges;
  for (let c = 1; c < charges.length; c++) {
    if (charges[c].key !== key) return `\0[${JSON.stringify(charges.map((charge) => charge.key))}`;
  }
  return key.charCodeAt(0) === 0 ? `\0=${key}` : key;
}
