import {
  createLimiter,
  type Decision,
  type Key,
  type Limiter,
  type MaybePromise,
  type Reservation,
  type Rule,
  type RuleDecision,
  type RuleStatus,
  type Store,
} from "sluice";
import type { LimiterConfig } from "../config/configuration.js";
import type { LimiterTallies } from "../metrics.js";
import type { Answer } from "./answer.js";
import { compileTemplate, type TemplateSource } from "./template.js";

/**
 * A limiter of the configuration at work: the rules that can refuse as one limiter, and each rule in trial
 * as one of its own, so that a trial neither refuses, nor keeps another rule from being charged.
 */
export class LiveLimiter {
  readonly config: LimiterConfig;
  /** The rules that answers and headers tell of. */
  readonly rules: readonly Rule[];
  /** Whether decisions come at once, without a promise. */
  readonly isSync: boolean;
  /** Whether keys are records, of which a rule counts by some parts. */
  readonly hasParts: boolean;
  /** After this long a reservation has left every window. */
  readonly longestWindowMs: number;
  readonly #enforced: Limiter | undefined;
  readonly #trials: readonly Limiter[];
  readonly #tallies: LimiterTallies;
  readonly #keyOf: ((source: TemplateSource) => Key) | undefined;

  constructor(config: LimiterConfig, store: Store, tallies: LimiterTallies) {
    const { name, rules, shadowRules, partition, key } = config;
    const make = (some: readonly Rule[]) =>
      createLimiter({ name, store, rules: some, ...(partition !== undefined && { partition }) });
    this.config = config;
    this.#enforced = rules.length > 0 ? make(rules) : undefined;
    this.#trials = shadowRules.map((rule) => make([rule]));
    this.rules = this.#enforced ? rules : shadowRules;
    this.longestWindowMs = Math.max(...[...rules, ...shadowRules].map(({ window }) => window));
    this.#tallies = tallies;
    this.isSync = store.sync && this.#enforced !== undefined && this.#trials.length === 0;
    this.hasParts = typeof key === "object" || [...rules, ...shadowRules].some(({ by }) => by !== undefined);
    this.#keyOf = key === undefined ? undefined : keyReader(key);
  }

  /** Whom a forwarded request counts for; undefined where the limiter has no `key`. */
  keyOf(source: TemplateSource): Key | undefined {
    return this.#keyOf?.(source);
  }

  tryAcquire(key: Key, cost: number): MaybePromise<Answer> {
    const enforced = this.#enforced;
    if (this.isSync && enforced) {
      const decision = enforced.tryAcquireSync(key, cost);
      this.#tallies.count(decision);
      return decision;
    }
    return this.#tryAcquire(key, cost);
  }

  async #tryAcquire(key: Key, cost: number): Promise<Answer> {
    const decision = await this.#enforced?.tryAcquire(key, cost);
    // What an enforced rule refuses never happened, so a trial must not count it either.
    const happens = decision?.allowed ?? true;
    const shadow = await this.#tryTrials((trial) =>
      happens ? trial.tryAcquire(key, cost) : trial.peek(key, cost),
    );
    return this.#counted(this.#answer(decision, shadow), happens);
  }

  async peek(key: Key, cost: number): Promise<Answer> {
    const decision = await this.#enforced?.peek(key, cost);
    return this.#answer(decision, await this.#tryTrials((trial) => trial.peek(key, cost)));
  }

  async reserve(key: Key, cost: number): Promise<{ answer: Answer; reservations: readonly Reservation[] }> {
    const enforced = await this.#enforced?.reserve(key, cost);
    const reservations: Reservation[] = enforced ? [enforced] : [];
    const happens = enforced?.decision.allowed ?? true;
    const shadow = await this.#tryTrials(async (trial) => {
      if (!happens) return trial.peek(key, cost);
      const reservation = await trial.reserve(key, cost);
      reservations.push(reservation);
      return reservation.decision;
    });
    return { answer: this.#counted(this.#answer(enforced?.decision, shadow), happens), reservations };
  }

  /** What each rule holds for the key, those in trial marked. */
  async status(key: Key): Promise<readonly (RuleStatus & { readonly shadow: boolean })[]> {
    const enforced = (await this.#enforced?.status(key)) ?? [];
    const trials = await Promise.all(this.#trials.map((trial) => trial.status(key)));
    return [
      ...enforced.map((status) => ({ ...status, shadow: false })),
      ...trials.flat().map((status) => ({ ...status, shadow: true })),
    ];
  }

  async reset(key: Key): Promise<void> {
    await this.#enforced?.reset(key);
    for (const trial of this.#trials) await trial.reset(key);
  }

  /** A trial's own trouble is its own: it is left out, and the caller's answer stands. */
  async #tryTrials(decide: (trial: Limiter) => Promise<Decision>): Promise<readonly RuleDecision[]> {
    if (this.#trials.length === 0) return [];
    const decisions = await Promise.allSettled(this.#trials.map(decide));
    return decisions.flatMap((each) => (each.status === "fulfilled" ? each.value.rules : []));
  }

  #answer(decision: Decision | undefined, shadow: readonly RuleDecision[]): Answer {
    const answer = decision ?? passing(this.rules, shadow);
    return this.#trials.length === 0 ? answer : { ...answer, shadow };
  }

  #counted(answer: Answer, happens: boolean): Answer {
    this.#tallies.count(answer);
    if (happens) for (const each of answer.shadow ?? []) this.#tallies.countShadow(each);
    return answer;
  }
}

/** The answer of a limiter that is in trial as a whole: it passes, and tells the trial's own state. */
function passing([rule]: readonly Rule[], [trial]: readonly RuleDecision[]): Decision {
  const { name = "", limit = 0 } = rule ?? {};
  return {
    allowed: true,
    rule: name,
    limit,
    remaining: trial?.remaining ?? limit,
    retryAfterMs: 0,
    resetAfterMs: trial?.resetAfterMs ?? 0,
    rules: [],
  };
}

function keyReader(key: string | Readonly<Record<string, string>>): (source: TemplateSource) => Key {
  if (typeof key === "string") return compileTemplate(key).render;
  const parts = Object.entries(key).map(
    ([name, template]) => [name, compileTemplate(template).render] as const,
  );
  return (source) => Object.fromEntries(parts.map(([name, render]) => [name, render(source)]));
}
