import { combine, type Decision, type RuleDecision, type RuleStatus } from "../decision.js";
import { SluiceError, show } from "../errors.js";
import { keyFor, partitionOf } from "../key.js";
import { uniqueId } from "../limiter.js";
import { capacity, isLease } from "../rule.js";
import { type Charge, type Store, type StoredRule, settlementsOf } from "../store.js";
import type { WaitingLines } from "../waiting.js";
import { type AiSdkMiddleware, aiSdkMiddleware } from "./aiSdk.js";
import { type Amounts, actualOf, amountsOf, type Subject } from "./amounts.js";
import type { ReserveOptions, Run, RunCaps } from "./budget.js";
import type { Estimator } from "./estimate.js";
import { type FetchOptions, limitedFetch } from "./fetch.js";
import type { HookOptions, HookSubject } from "./hook.js";
import { type Limit, type StoredLimit, storedLimits } from "./limits.js";
import { pauseSettlement } from "./pause.js";
import { MICRO, type PriceTable } from "./prices.js";
import type { Renewals } from "./renewals.js";
import { BudgetReservation } from "./reservation.js";
import type { Usage } from "./usage.js";

/** A run is forgotten a day after its last call. */
const RUN_WINDOW = "1d";

/** What a budget shares with its runs. */
export interface Shared {
  readonly name: string;
  readonly store: Store;
  readonly ownsStore: boolean;
  readonly partition: string | undefined;
  readonly prices: PriceTable;
  readonly estimator: Estimator;
  readonly lines: WaitingLines;
  readonly lease: number;
  readonly renewals: Renewals;
  readonly pauseRule: StoredRule;
  closed: boolean;
}

export class LimitedBudget implements Run {
  readonly id: string;
  readonly #shared: Shared;
  readonly #limits: readonly StoredLimit[];
  readonly #defaults: Subject;

  constructor(shared: Shared, limits: readonly StoredLimit[], defaults: Subject) {
    this.#shared = shared;
    this.#limits = limits;
    this.#defaults = defaults;
    this.id = String(defaults.run ?? "");
  }

  async reserve(subject: Subject, options: ReserveOptions = {}): Promise<BudgetReservation> {
    const { amounts, charges } = this.#plan(subject);
    for (const { rule, cost } of charges) {
      if (cost <= capacity(rule)) continue;
      throw new SluiceError(
        "NEVER_FITS",
        `${this.#shown(rule.name, cost)} can never fit limit "${rule.name}", which admits at most ${this.#shown(rule.name, capacity(rule))} at once; ask for less or raise the limit.`,
      );
    }
    const { priority = 0 } = options;
    if (!Number.isFinite(priority)) {
      throw new SluiceError("INVALID_OPTION", `priority must be a number; got ${show(priority)}.`);
    }
    try {
      const hopeless = (rules: readonly RuleDecision[]) => this.#runOver(rules);
      const rules = await this.#shared.lines.wait(charges, { ...options, priority, hopeless });
      return this.#reservation(amounts, charges, rules);
    } catch (error) {
      throw this.#inDollars(error);
    }
  }

  async tryReserve(subject: Subject): Promise<BudgetReservation> {
    const { amounts, charges } = this.#plan(subject);
    return this.#reservation(amounts, charges, await this.#shared.store.decide(charges, true));
  }

  async status(subject: Subject): Promise<readonly RuleStatus[]> {
    const charges = this.#charges({ ...this.#defaults, ...subject, upstream: undefined }, undefined);
    const held = await this.#shared.store.status(charges);
    return held.map((status, l) => {
      if (this.#limits[l].unit !== "usd") return status;
      const { count, limit, remaining } = status;
      return { ...status, count: count / MICRO, limit: limit / MICRO, remaining: remaining / MICRO };
    });
  }

  async pause(upstream: string, ms: number, subject: Subject = {}): Promise<void> {
    const charge = this.#pauseCharge(upstream, { ...this.#defaults, ...subject });
    const [{ at }] = await this.#shared.store.decide([charge], false);
    await this.#shared.store.settle([pauseSettlement(charge, at, ms)]);
  }

  run({ id = crypto.randomUUID(), tokens, usd, steps }: RunCaps): Run {
    const by = ["run"];
    const caps: Limit[] = [];
    if (tokens !== undefined)
      caps.push({ name: "run-tokens", unit: "tokens", limit: tokens, window: RUN_WINDOW, by });
    if (usd !== undefined) caps.push({ name: "run-usd", unit: "usd", limit: usd, window: RUN_WINDOW, by });
    if (steps !== undefined)
      caps.push({ name: "run-steps", unit: "requests", limit: steps, window: RUN_WINDOW, by });
    const limits = storedLimits(this.#shared.name, caps, this.#shared.lease, true);
    return new LimitedBudget(this.#shared, [...limits, ...this.#limits], { ...this.#defaults, run: id });
  }

  fetch(subject: HookSubject = {}, options: FetchOptions = {}): typeof globalThis.fetch {
    return limitedFetch(this, subject, options);
  }

  aiSdk(subject: HookSubject = {}, options: HookOptions = {}): AiSdkMiddleware {
    return aiSdkMiddleware(this, subject, options);
  }

  async close(): Promise<void> {
    this.#shared.closed = true;
    this.#shared.lines.close();
    this.#shared.renewals.close();
    if (this.#shared.ownsStore) await this.#shared.store.close();
  }

  #plan(given: Subject): { amounts: Amounts; charges: readonly Charge[] } {
    const subject = { ...this.#defaults, ...given };
    const { estimator, prices } = this.#shared;
    const amounts = amountsOf(subject, this.#limits, estimator, prices);
    const charges = this.#charges(subject, amounts);
    if (subject.upstream !== undefined) charges.push(this.#pauseCharge(subject.upstream, subject));
    return { amounts, charges };
  }

  /** One charge per limit, each with its own key and cost. */
  #charges(subject: Subject, amounts: Amounts | undefined): Charge[] {
    const { name, partition, closed } = this.#shared;
    if (closed) throw new SluiceError("CLOSED", `Budget "${name}" is closed; make a new one.`);
    const who = subject as Readonly<Record<string, string | number>>;
    const together = partitionOf(name, who, partition);
    const id = uniqueId();
    return this.#limits.map(({ unit, rule }) => ({
      rule,
      key: keyFor(rule, rule.by === undefined ? "all" : who),
      cost: amounts?.byUnit[unit] ?? 0,
      partition: together,
      ...(isLease(rule) && { id }),
    }));
  }

  #pauseCharge(upstream: string, subject: Subject): Charge {
    const { name, partition, pauseRule: rule } = this.#shared;
    const who = subject as Readonly<Record<string, string | number>>;
    return {
      rule,
      key: keyFor(rule, upstream),
      cost: 1,
      partition: partitionOf(name, who, partition),
      look: true,
    };
  }

  #reservation(
    amounts: Amounts,
    charges: readonly Charge[],
    rules: readonly RuleDecision[],
  ): BudgetReservation {
    const { store, lines, estimator, prices, renewals } = this.#shared;
    const { model, counted } = amounts;
    const settle = async (actual: (limit: StoredLimit) => number | undefined) => {
      const settlements = settlementsOf(charges, rules, ({ rule, cost }, c) => {
        const limit = this.#limits.at(c);
        const settled = limit && { actual: actual(limit) ?? cost };
        const isHeld = isLease(rule) && cost > 0;
        return settled?.actual === cost && !isHeld ? undefined : settled;
      });
      if (settlements.length === 0) return;
      await store.settle(settlements);
      lines.wake(settlements.filter(({ cost, actual = cost }) => actual < cost));
    };
    const effects = {
      settle: async (usage: Usage | undefined) => {
        if (usage !== undefined) estimator.learn(model, counted, usage);
        await settle((limit) => actualOf(limit, usage ?? {}, model, prices));
      },
      cancel: () => settle(() => 0),
      renew: async () => {
        const leases = settlementsOf(charges, rules, ({ rule, cost }) =>
          isLease(rule) && cost > 0 ? {} : undefined,
        );
        return leases.length === 0 || store.settle(leases);
      },
    };
    const holds = charges.some(({ rule, cost }) => isLease(rule) && cost > 0);
    return new BudgetReservation(
      this.#told(combine(rules)),
      amounts.usage,
      effects,
      holds ? renewals : undefined,
    );
  }

  #runOver(rules: readonly RuleDecision[]): SluiceError | undefined {
    const over = this.#limits.findIndex(({ endsRun }, l) => endsRun && !rules[l].allowed);
    if (over < 0) return undefined;
    const { rule, limit } = rules[over];
    return new SluiceError(
      "RUN_OVER",
      `Run "${this.id}" has reached its cap "${rule}" of ${this.#shown(rule, limit)}; end the loop.`,
      { decision: combine(rules) },
    );
  }

  /** A decision as the caller counts: dollars in dollars. */
  #told(decision: Decision): Decision {
    const isUsd = (name: string) =>
      this.#limits.some(({ unit, rule }) => unit === "usd" && rule.name === name);
    const told = <T extends { rule: string; limit: number; remaining: number }>(part: T): T =>
      isUsd(part.rule) ? { ...part, limit: part.limit / MICRO, remaining: part.remaining / MICRO } : part;
    return { ...told(decision), rules: decision.rules.map(told) };
  }

  #inDollars(error: unknown): unknown {
    if (!(error instanceof SluiceError) || error.decision === undefined) return error;
    const { code, message, decision } = error;
    return new SluiceError(code, message, { decision: this.#told(decision) });
  }

  #shown(name: string, amount: number): string {
    const unit = this.#limits.find(({ rule }) => rule.name === name)?.unit ?? "requests";
    return unit === "usd" ? `$${amount / MICRO}` : `${amount} ${unit}`;
  }
}
