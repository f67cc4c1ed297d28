import type { RuleDecision, RuleStatus } from "../decision.js";
import { checkNames, SluiceError, show, wholeNumber } from "../errors.js";
import { capacity } from "../rule.js";
import type { Charge, Count, Entry, MaybePromise, Settlement, Store, StoredRule } from "../store.js";
import { type Breaker, breakerOf, callSafely, type OutageEvents } from "./breaker.js";
import { Deadlines, systemTiming, type Timing } from "./deadlines.js";
import { memoryStore } from "./memory.js";

/** What decides while the store is out: let all pass, refuse all, or count in this process. */
export type OutagePolicy = "open" | "closed" | "local";

export interface ResilientOptions {
  /** What decides while the store is out. */
  readonly onOutage: OutagePolicy;
  /** Every call is answered within this time: 50 unless told. */
  readonly deadlineMs?: number;
  /** How many processes share the limits: under `"local"` each admits this part of them. 1 unless told. */
  readonly instances?: number;
  /** What counts under `"local"`: a `memoryStore()` of its own unless told. */
  readonly local?: Store;
  /** For metrics. What these throw is ignored. */
  readonly events?: ResilientEvents;
}

export interface ResilientEvents extends OutageEvents {
  /** Settlements that did not reach the store, or perhaps did not: what they gave back still counts. */
  readonly onLost?: (lost: {
    readonly settlements: readonly Settlement[];
    readonly error: SluiceError;
  }) => unknown;
}

const POLICIES: readonly OutagePolicy[] = ["open", "closed", "local"];
const LONGEST_DEADLINE = 60_000;
/** When to ask again, where an outage leaves no better answer: it may be over any time. */
const RETRY_MS = 1000;

/**
 * The store, with a plan for its outages: every call is answered within `deadlineMs`, by the store or
 * else by the policy, and such a decision says `degraded`. A store that fails is not asked any more
 * but for one probe at a time, five times a second. Misuse still throws; an outage never does, but from
 * `status`, `count`, `entries` and `reset`, which reject with `STORE_FAILED` as no policy can answer them.
 */
export function resilient(store: Store, options: ResilientOptions): Store {
  return new ResilientStore(store, checked(store, options), systemTiming);
}

function checked(store: Store, options: ResilientOptions): Required<ResilientOptions> {
  if (typeof store?.decide !== "function") refuse(`resilient takes a store first; got ${show(store)}.`);
  if (typeof options !== "object" || options === null) {
    refuse(`resilient takes { onOutage, deadlineMs?, ... } second; got ${show(options)}.`);
  }
  checkNames("INVALID_OPTION", "resilient", options, [
    "onOutage",
    "deadlineMs",
    "instances",
    "local",
    "events",
  ] satisfies (keyof ResilientOptions)[]);
  const { onOutage, deadlineMs = 50, instances = 1, local = memoryStore(), events = {} } = options;
  if (!POLICIES.includes(onOutage)) {
    refuse(`onOutage must be ${POLICIES.map(show).join(" or ")}; got ${show(onOutage)}.`);
  }
  wholeNumber("INVALID_OPTION", "deadlineMs", deadlineMs, 1, LONGEST_DEADLINE);
  wholeNumber("INVALID_OPTION", "instances", instances, 1);
  for (const [name, listener] of Object.entries(events)) {
    if (listener !== undefined && typeof listener !== "function") {
      refuse(`events.${name} must be a function; got ${show(listener)}.`);
    }
  }
  return { onOutage, deadlineMs, instances, local, events };
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_OPTION", message);
}

class ResilientStore implements Store {
  readonly sync: boolean;
  readonly entries?: NonNullable<Store["entries"]>;
  readonly #store: Store;
  readonly #policy: OutagePolicy;
  readonly #instances: number;
  readonly #local: Store;
  readonly #events: ResilientEvents;
  readonly #deadlineMs: number;
  readonly #breaker: Breaker;
  readonly #deadlines: Deadlines;
  readonly #shares = new WeakMap<StoredRule, StoredRule>();

  constructor(store: Store, options: Required<ResilientOptions>, timing: Timing) {
    this.sync = store.sync && options.local.sync;
    this.#store = store;
    this.#policy = options.onOutage;
    this.#instances = options.instances;
    this.#local = options.local;
    this.#events = options.events;
    this.#deadlineMs = options.deadlineMs;
    this.#breaker = breakerOf(store, options.deadlineMs, timing.now);
    this.#breaker.listen(this.#events);
    this.#deadlines = new Deadlines(options.deadlineMs, timing, true);
    if (store.entries !== undefined) {
      this.entries = (charge, from, to, most) =>
        this.#ask(() => store.entries?.(charge, from, to, most) as MaybePromise<readonly Entry[]>, rethrow);
    }
  }

  decide(charges: readonly Charge[], commit: boolean): MaybePromise<readonly RuleDecision[]> {
    return this.#ask(
      () => this.#store.decide(charges, commit),
      () => this.#decideDegraded(charges, commit),
    );
  }

  /**
   * Never rejects for an outage: what did not arrive is told to `onLost`. What a policy admitted is
   * settled where it was counted: in this process under `"local"`, and nowhere otherwise.
   */
  settle(settlements: readonly Settlement[]): MaybePromise<boolean> {
    const [first] = settlements;
    if (first?.degraded === "local") return this.#local.settle(this.#localCharges(settlements));
    if (first?.degraded !== undefined) return true;
    return this.#ask(
      () => this.#store.settle(settlements),
      (error) => {
        callSafely(this.#events.onLost, { settlements, error });
        return true;
      },
    );
  }

  status(charges: readonly Charge[]): MaybePromise<readonly RuleStatus[]> {
    return this.#ask(() => this.#store.status(charges), rethrow);
  }

  count(charges: readonly Charge[], from: number, to: number): MaybePromise<readonly (Count | undefined)[]> {
    return this.#ask(() => this.#store.count(charges, from, to), rethrow);
  }

  reset(charges: readonly Charge[]): MaybePromise<void> {
    if (this.#policy !== "local") return this.#ask(() => this.#store.reset(charges), rethrow);
    const here = this.#local.reset(this.#localCharges(charges));
    const there = this.#ask(() => this.#store.reset(charges), rethrow);
    if (!isPromise(here) && !isPromise(there)) return;
    return Promise.all([here, there]).then(() => undefined);
  }

  /** Closes the store it was given as well. */
  async close(): Promise<void> {
    this.#breaker.unlisten(this.#events);
    await Promise.all([this.#store.close(), this.#local.close()]);
  }

  /** Asks the store, unless it is out; `instead` answers when it is, or does not answer in time. */
  #ask<T>(call: () => MaybePromise<T>, instead: (error: SluiceError) => MaybePromise<T>): MaybePromise<T> {
    const breaker = this.#breaker;
    const generation = breaker.enter();
    if (generation === undefined) return instead(breaker.lastError);
    let answer: MaybePromise<T>;
    try {
      answer = call();
    } catch (error) {
      breaker.left(generation);
      return instead(this.#failed(error));
    }
    if (!isPromise(answer)) {
      breaker.answered();
      breaker.left(generation);
      return answer;
    }
    return this.#inTime(answer, generation, instead);
  }

  #inTime<T>(
    answer: Promise<T>,
    generation: number,
    instead: (error: SluiceError) => MaybePromise<T>,
  ): Promise<T> {
    const breaker = this.#breaker;
    const deadlines = this.#deadlines;
    return new Promise((resolve, reject) => {
      const give = (error: unknown) => {
        try {
          resolve(instead(this.#failed(error)));
        } catch (reason) {
          reject(reason);
        }
      };
      const pending = deadlines.add(() => give(new Error(`no answer within ${this.#deadlineMs} ms`)));
      answer.then(
        (value) => {
          if (deadlines.done(pending)) breaker.answered();
          breaker.left(generation);
          resolve(value);
        },
        (error) => {
          const isInTime = deadlines.done(pending);
          breaker.left(generation);
          if (isInTime) give(error);
        },
      );
    });
  }

  /** Why the store did not answer; misuse is the caller's to hear of, and no outage. */
  #failed(error: unknown): SluiceError {
    if (error instanceof SluiceError && error.code !== "STORE_FAILED") throw error;
    this.#breaker.failed(error);
    return this.#breaker.lastError;
  }

  #decideDegraded(charges: readonly Charge[], commit: boolean): MaybePromise<readonly RuleDecision[]> {
    const degraded = this.#policy;
    if (degraded !== "local") return charges.map((charge) => policyDecision(charge, degraded));
    const decisions = this.#local.decide(this.#localCharges(charges), commit);
    const mark = (all: readonly RuleDecision[]) => all.map((decision, c) => asLocal(decision, charges[c]));
    return isPromise(decisions) ? decisions.then(mark) : mark(decisions);
  }

  #localCharges<T extends Charge>(charges: readonly T[]): T[] {
    return charges.map((charge) => ({ ...charge, rule: this.#shareOf(charge.rule) }));
  }

  /** The rule with this process's part of the limit, at least 1. */
  #shareOf(rule: StoredRule): StoredRule {
    let share = this.#shares.get(rule);
    if (share === undefined) {
      const part = (whole: number) => Math.max(1, Math.floor(whole / this.#instances));
      const { limit, burst } = rule;
      share = { ...rule, limit: part(limit), ...(burst !== undefined && { burst: part(burst) }) };
      this.#shares.set(rule, share);
    }
    return share;
  }
}

function policyDecision({ rule, cost }: Charge, degraded: "open" | "closed"): RuleDecision {
  const most = capacity(rule);
  const allowed = degraded === "open" && cost <= most;
  return {
    rule: rule.name,
    allowed,
    limit: rule.limit,
    remaining: allowed ? most - cost : 0,
    retryAfterMs: allowed ? 0 : cost <= most ? RETRY_MS : Infinity,
    resetAfterMs: allowed ? 0 : RETRY_MS,
    at: Date.now(),
    degraded,
  };
}

/** A cost above this process's part may fit again once the outage is over. */
function asLocal(decision: RuleDecision, { rule, cost }: Charge): RuleDecision {
  const { rule: name, allowed, limit, remaining, retryAfterMs, resetAfterMs, at } = decision;
  const isTooLargeHere = retryAfterMs === Infinity && cost <= capacity(rule);
  // Field by field: a copy by `...` that overrides some costs more than the decision did.
  return {
    rule: name,
    allowed,
    limit,
    remaining,
    retryAfterMs: isTooLargeHere ? RETRY_MS : retryAfterMs,
    resetAfterMs,
    at,
    degraded: "local",
  };
}

function rethrow(error: SluiceError): never {
  throw error;
}

function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise;
}
