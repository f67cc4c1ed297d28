import type { RuleDecision } from "../../decision.js";
import type { Charge, Settlement } from "../../store.js";

/** Permits that were charged at once, to be spent here until they expire. */
export class Lease {
  /** What is left to spend. */
  units: number;
  readonly #charges: readonly Charge[];
  readonly #decisions: readonly RuleDecision[];
  readonly #toldAt: number;
  readonly #expiresAt: number;

  /** `charges` and `decisions` are the remote's; times are this process's. */
  constructor(
    units: number,
    charges: readonly Charge[],
    decisions: readonly RuleDecision[],
    toldAt: number,
    expiresAt: number,
  ) {
    this.units = units;
    this.#charges = charges;
    this.#decisions = decisions;
    this.#toldAt = toldAt;
    this.#expiresAt = expiresAt;
  }

  covers(cost: number, now: number): boolean {
    return cost <= this.units && now < this.#expiresAt;
  }

  /** Takes from what is left, and answers as the remote did: counted when the lease was. */
  spend(cost: number, now: number): readonly RuleDecision[] {
    this.units -= cost;
    return this.answer(this.units, now);
  }

  /** What the remote had left when it was asked, and what is left here. */
  answer(units: number, now: number): readonly RuleDecision[] {
    const since = now - this.#toldAt;
    const decisions = this.#decisions;
    const answers = new Array<RuleDecision>(decisions.length);
    for (let d = 0; d < answers.length; d++) {
      const { rule, limit, remaining, resetAfterMs, at } = decisions[d];
      answers[d] = {
        rule,
        allowed: true,
        limit,
        remaining: remaining + units,
        retryAfterMs: 0,
        resetAfterMs: Math.max(0, Math.ceil(resetAfterMs - since)),
        at,
      };
    }
    return answers;
  }

  /** Ends it: what gives the rest back, if there is any. */
  end(): Settlement[] {
    const { units } = this;
    this.units = 0;
    if (units === 0) return [];
    return this.#charges.map((charge, c) => ({
      ...charge,
      cost: units,
      actual: 0,
      at: this.#decisions[c].at,
    }));
  }
}
