import {
  type Charge,
  type MaybePromise,
  type RuleDecision,
  type RuleStatus,
  type Store,
  type StoredRule,
  slidingLog,
  storedRules,
} from "sluice";
import type { DomainConfig } from "../config/configuration.js";
import { UNIT_MS, UNITS, type Unit } from "../config/envoySchema.js";
import type { LimiterTallies } from "../metrics.js";
import { DescriptorTree, keyOfEntries, limiterName, type Match, type PlacedLimit } from "./descriptors.js";
import {
  type Entry,
  type RateLimitRequest,
  type RateLimitResponse,
  RequestError,
  type RequestedDescriptor,
  type RequestedLimit,
} from "./messages.js";
import { respond, type Settled } from "./respond.js";

/** A store to decide with that answers, or has its policy answer, within so many milliseconds. */
export type StoreWithin = (ms: number) => Store;

/** A descriptor that falls under a limit, and what it asks of it. */
interface Hit extends Match {
  readonly cost: number;
  /** Its place in the request. */
  readonly place: number;
}

const UNMATCHED: Settled = { match: undefined };
/** So many limits of requests' own are kept apart; each is a counter that lives as long as the server. */
const MOST_OVERRIDES = 1000;

/**
 * A domain at work. All descriptors of a request that can refuse it are decided in one step: all are
 * charged, or none. Those in trial are decided afterwards, each alone.
 */
export class LiveDomain {
  readonly #domain: string;
  readonly #tree: DescriptorTree;
  readonly #storeWithin: StoreWithin;
  readonly #tallies: LimiterTallies;
  readonly #overrides = new Map<string, PlacedLimit>();

  constructor({ domain, nodes }: DomainConfig, storeWithin: StoreWithin, tallies: LimiterTallies) {
    this.#domain = domain;
    this.#tree = new DescriptorTree(domain, nodes);
    this.#storeWithin = storeWithin;
    this.#tallies = tallies;
  }

  /** Decides within so many milliseconds; `Infinity` where the caller waits. */
  decide(request: RateLimitRequest, withinMs: number): MaybePromise<RateLimitResponse> {
    const { descriptors } = request;
    const hits = this.#hits(request);
    const settled = new Array<Settled>(descriptors.length).fill(UNMATCHED);
    for (const { limit, place } of hits) settled[place] = { match: limit };
    const enforced = hits.filter(({ limit }) => limit.trial === undefined);
    const trials = hits.filter(({ limit }) => limit.trial !== undefined && limit.rule !== undefined);
    // A limit of 0 is not counted, and refuses: then the others are looked at, and none is charged.
    const isBlocked = enforced.some(({ limit }) => blocks(limit));
    const charges = this.#charges(enforced);
    const store = charges.length > 0 || trials.length > 0 ? this.#storeWithin(withinMs) : undefined;
    const finish = (decisions: readonly RuleDecision[]): MaybePromise<RateLimitResponse> => {
      const passes = !isBlocked && decisions.every(({ allowed }) => allowed);
      this.#settle(settled, enforced, charges, decisions);
      this.#count(enforced, settled);
      if (trials.length === 0 || store === undefined) return respond(settled, passes);
      return this.#tryTrials(store, trials, settled, passes).then(() => respond(settled, passes));
    };
    if (charges.length === 0 || store === undefined) return finish([]);
    const decisions = store.decide(charges, !isBlocked);
    return decisions instanceof Promise ? decisions.then(finish) : finish(decisions);
  }

  /** What is counted for a descriptor; undefined where none of the limits counts it. */
  async status(entries: readonly Entry[]): Promise<{ status: RuleStatus; rule: StoredRule } | undefined> {
    const match = this.#tree.match(entries);
    const rule = match?.limit.rule;
    if (!match || !rule) return undefined;
    const charge = { rule, key: match.key, cost: 0, partition: this.#domain };
    const [status] = await this.#storeWithin(Number.POSITIVE_INFINITY).status([charge]);
    return status && { status, rule };
  }

  #hits({ descriptors, hitsAddend }: RateLimitRequest): Hit[] {
    const matched: Hit[] = [];
    let replaces = false;
    for (let place = 0; place < descriptors.length; place++) {
      const descriptor = descriptors[place] as RequestedDescriptor;
      const match = this.#match(descriptor);
      if (match === undefined) continue;
      const { limit, key } = match;
      const asked = descriptor.hitsAddend ? descriptor.hitsAddend.value : hitsAddend || 1;
      matched.push({ limit, key, cost: Math.min(asked, Number.MAX_SAFE_INTEGER), place });
      if (limit.limit.replaces.length > 0) replaces = true;
    }
    if (!replaces) return matched;
    const replaced = new Set(matched.flatMap(({ limit }) => limit.limit.replaces));
    return matched.filter(({ limit }) => !replaced.has(limit.limit.name));
  }

  #match({ entries, limit }: RequestedDescriptor): Match | undefined {
    if (!limit) return this.#tree.match(entries);
    return { limit: this.#override(limit), key: keyOfEntries(entries) };
  }

  #override({ requestsPerUnit, unit: name }: RequestedLimit): PlacedLimit {
    const unit = name.toLowerCase() as Unit;
    if (!UNITS.includes(unit))
      throw new RequestError(`A descriptor's limit has the unit ${name}, which is not known.`);
    const place = `${requestsPerUnit}-${unit}`;
    const known = this.#overrides.get(place);
    if (known) return known;
    if (this.#overrides.size >= MOST_OVERRIDES) {
      throw new RequestError(
        `At most ${MOST_OVERRIDES} different limits can come with requests of a domain.`,
      );
    }
    const rule =
      requestsPerUnit > 0
        ? slidingLog({ limit: requestsPerUnit, window: UNIT_MS[unit], name: unit })
        : undefined;
    const placed: PlacedLimit = {
      limit: { unlimited: false, requestsPerUnit, unit, name: "", replaces: [], rule },
      rule: rule && storedRules(limiterName(this.#domain, ["override", place]), rule)[0],
      trial: undefined,
      label: "override",
    };
    this.#overrides.set(place, placed);
    return placed;
  }

  /** One charge per limit and key: descriptors that fall on the same are one charge of their sum. */
  #charges(hits: readonly Hit[]): Charge[] {
    const charges: Charge[] = [];
    for (const { limit, key, cost } of hits) {
      if (limit.rule === undefined) continue;
      const same = chargeOf(charges, limit.rule, key);
      if (same < 0) charges.push({ rule: limit.rule, key, cost, partition: this.#domain });
      else {
        const sum = Math.min((charges[same] as Charge).cost + cost, Number.MAX_SAFE_INTEGER);
        charges[same] = { ...(charges[same] as Charge), cost: sum };
      }
    }
    return charges;
  }

  #settle(
    settled: Settled[],
    hits: readonly Hit[],
    charges: readonly Charge[],
    decisions: readonly RuleDecision[],
  ): void {
    for (const { limit, key, place } of hits) {
      if (limit.rule === undefined) continue;
      const decision = decisions[chargeOf(charges, limit.rule, key)];
      if (decision) settled[place] = { match: limit, decision };
    }
  }

  async #tryTrials(store: Store, trials: readonly Hit[], settled: Settled[], passes: boolean): Promise<void> {
    const charges = this.#charges(trials);
    // What the request is refused for never happened, so a trial must not count it either.
    const decided = await Promise.allSettled(
      charges.map(async (charge) => (await store.decide([charge], passes))[0]),
    );
    const decisions = decided.map((each) => (each.status === "fulfilled" ? each.value : undefined));
    for (const { limit, key, place } of trials) {
      const decision = decisions[chargeOf(charges, limit.rule as StoredRule, key)];
      if (decision === undefined) continue;
      settled[place] = { match: limit, decision };
      if (passes) this.#tallies.countShadow({ ...decision, rule: limit.label });
    }
  }

  #count(hits: readonly Hit[], settled: readonly Settled[]): void {
    for (const { limit, place } of hits) {
      const decision = settled[place]?.decision;
      if (decision) this.#tallies.count({ ...decision, rule: limit.label });
      else if (blocks(limit)) this.#tallies.rule(limit.label).outcomes.denied++;
    }
  }
}

function blocks({ limit }: PlacedLimit): boolean {
  return !limit.unlimited && limit.requestsPerUnit === 0;
}

function chargeOf(charges: readonly Charge[], rule: StoredRule, key: string): number {
  return charges.findIndex((charge) => charge.rule === rule && charge.key === key);
}
