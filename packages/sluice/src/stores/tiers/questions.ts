import type { RuleDecision } from "../../decision.js";
import { type Charge, type MaybePromise, type Settlement, type Store, settlementsOf } from "../../store.js";
import { Deadlines, type Timing } from "../deadlines.js";
import type { Caller, Entry, Group } from "./group.js";
import { Lease } from "./lease.js";
import { spendableMs } from "./leasing.js";

/** Of what there was the last time as much is asked for: the rest lets others who ask have theirs at once. */
const SHARE = 1 / 2;
/** As many times of what was taken must be left for a full key to be full no more. */
const PLENTY = 3;
/** A full key is asked for again when about as many are to be had as this, but within a lease's life... */
const WORTH_ASKING = 48;
/** ... and not before this part of it. */
const SHORTEST_PAUSE = 1 / 8;

/** What a hot key needs of the store around it. */
export interface Tier {
  /** The remote, asked by the rules that it enforces. */
  decide(charges: readonly Charge[], commit: boolean): MaybePromise<readonly RuleDecision[]>;
  settle: Store["settle"];
  /** The call answered from what is known here, where it can be. */
  answer(entry: Entry, cost: number, now: number): readonly RuleDecision[] | undefined;
  remember(entry: Entry, cost: number, decisions: readonly RuleDecision[], askedAt: number): void;
}

/**
 * Asks the remote for hot keys: one question at a time for each, for all who wait and for those who
 * are expected while a lease lives.
 */
export class Questions {
  readonly #tier: Tier;
  readonly #timing: Timing;
  readonly #ends = new Map<number, Deadlines>();

  constructor(tier: Tier, timing: Timing) {
    this.#tier = tier;
    this.#timing = timing;
  }

  ask(
    group: Group,
    entry: Entry,
    charges: readonly Charge[],
    cost: number,
  ): Promise<readonly RuleDecision[]> {
    return new Promise((resolve, reject) => {
      entry.callers.push({ charges, cost, resolve, reject });
      if (!entry.isAsking) void this.#serve(group, entry);
    });
  }

  /** Gives back what a lease has left. */
  async release(entry: Entry, lease: Lease): Promise<void> {
    if (entry.lease === lease) entry.lease = undefined;
    const settlements: Settlement[] = lease.end();
    if (settlements.length === 0 || entry.isForgotten) return;
    try {
      await this.#tier.settle(settlements);
    } catch {
      // Not given back, it counts until it leaves the window.
    }
  }

  async #serve(group: Group, entry: Entry): Promise<void> {
    entry.isAsking = true;
    while (entry.callers.length > 0) {
      const callers = takeFirst(group, entry);
      try {
        await this.#question(group, entry, callers);
      } catch (error) {
        for (const caller of callers) caller.reject(error);
      }
      this.#answerHere(entry);
    }
    entry.isAsking = false;
  }

  /** Those who came while the remote was asked. */
  #answerHere(entry: Entry): void {
    const now = this.#timing.now();
    entry.callers = entry.callers.filter((caller) => {
      const decisions = this.#tier.answer(entry, caller.cost, now);
      if (decisions !== undefined) caller.resolve(decisions);
      return decisions === undefined;
    });
  }

  async #question(group: Group, entry: Entry, callers: readonly Caller[]): Promise<void> {
    const cost = sumOf(callers);
    const wanted = Math.max(cost, Math.min(expected(group, entry), group.most));
    const n = Math.max(cost, Math.min(wanted, entry.want));
    const charges = callers[0].charges.map((charge) => ({ ...charge, cost: n }));
    const { changes } = group;
    const askedAt = this.#timing.now();
    const decisions = await this.#tier.decide(charges, true);
    group.tookMs = this.#timing.now() - askedAt;
    if (decisions.some(({ degraded }) => degraded !== undefined)) {
      return this.#askOneByOne(charges, decisions, callers);
    }
    const [head, ...others] = callers;
    const left = leastOf(decisions);
    if (decisions.every(({ allowed }) => allowed)) {
      const isPlenty = left >= PLENTY * n;
      if (left < head.cost) entry.isFull = true;
      else if (isPlenty && n === wanted) entry.isFull = false;
      entry.want = Math.max(1, Math.floor((n + left) * SHARE));
      this.#grant(group, entry, callers, n - cost, charges, decisions, askedAt);
      if (entry.isFull && !isPlenty) this.#pause(group, entry, leftToOthers(decisions, left), askedAt);
    } else if (n > head.cost) {
      // There is less than was asked for, or nothing, and then the head alone will hear for how long.
      entry.want = Math.max(head.cost, Math.floor(left * SHARE));
      entry.callers.unshift(...callers);
    } else {
      if (changes === group.changes) {
        entry.isFull = true;
        this.#tier.remember(entry, n, decisions, askedAt);
        this.#pause(group, entry, decisions, askedAt);
      }
      head.resolve(decisions);
      entry.callers.unshift(...others);
    }
  }

  /** The remote is out, and a policy answered: it is asked for each caller, and nothing is leased. */
  async #askOneByOne(
    charges: readonly Charge[],
    decisions: readonly RuleDecision[],
    callers: readonly Caller[],
  ): Promise<void> {
    if (decisions.every(({ allowed }) => allowed)) {
      await this.#tier.settle(settlementsOf(charges, decisions, () => ({ actual: 0 })));
    }
    for (const caller of callers) {
      caller.resolve(Promise.resolve(this.#tier.decide(caller.charges, true)));
    }
  }

  #grant(
    group: Group,
    entry: Entry,
    callers: readonly Caller[],
    extra: number,
    charges: readonly Charge[],
    decisions: readonly RuleDecision[],
    askedAt: number,
  ): void {
    const toldAt = this.#timing.now();
    const lifeMs = Math.min(...group.rules.map((rule, r) => spendableMs(rule, decisions[r].at)));
    const lease = new Lease(extra, charges, decisions, toldAt, askedAt + lifeMs);
    let after = extra + sumOf(callers);
    for (const caller of callers) {
      after -= caller.cost;
      caller.resolve(lease.answer(after, toldAt));
    }
    if (extra === 0 || entry.isForgotten) return;
    if (entry.lease !== undefined) void this.release(entry, entry.lease);
    entry.lease = lease;
    this.#endsAfter(group.leaseMs).add(() => void this.release(entry, lease));
  }

  /** Full: whoever cannot have what is left is refused here for a while, until there is enough for many. */
  #pause(group: Group, entry: Entry, decisions: readonly RuleDecision[], askedAt: number): void {
    entry.full = decisions;
    const change = Math.min(2, Math.max(1 / 2, WORTH_ASKING / entry.want));
    entry.pause = Math.min(1, Math.max(SHORTEST_PAUSE, entry.pause * change));
    entry.fullUntil = askedAt + group.leaseMs * entry.pause * (0.75 + 0.5 * this.#timing.random());
  }

  #endsAfter(leaseMs: number): Deadlines {
    let ends = this.#ends.get(leaseMs);
    if (ends === undefined) {
      ends = new Deadlines(leaseMs, this.#timing, false);
      this.#ends.set(leaseMs, ends);
    }
    return ends;
  }
}

/** What is asked of a key in the time that a lease of it can be spent. */
function expected(group: Group, entry: Entry): number {
  const usableMs = group.leaseMs - group.tookMs;
  return usableMs * 2 < group.leaseMs ? 0 : Math.floor((entry.demand.units * usableMs) / group.leaseMs);
}

/** The first to come, and with it as many of the next as one question takes. */
function takeFirst(group: Group, entry: Entry): readonly Caller[] {
  const room = Math.min(entry.want, group.most);
  let cost = 0;
  let size = 0;
  for (const caller of entry.callers) {
    cost += caller.cost;
    if (size > 0 && cost > room) break;
    size++;
  }
  return entry.callers.splice(0, size);
}

/** As if the rules that had least left had nothing. */
function leftToOthers(decisions: readonly RuleDecision[], left: number): readonly RuleDecision[] {
  return decisions.map((decision) =>
    decision.remaining === left ? { ...decision, remaining: 0 } : decision,
  );
}

function leastOf(decisions: readonly RuleDecision[]): number {
  return Math.min(...decisions.map(({ remaining }) => remaining));
}

function sumOf(callers: readonly Caller[]): number {
  return callers.reduce((sum, { cost }) => sum + cost, 0);
}
