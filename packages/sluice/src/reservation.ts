import type { Decision } from "./decision.js";
import { wholeNumber } from "./errors.js";

/**
 * A cost taken now and settled later. Only the first of `settle`, `cancel` and leaving the scope of
 * an `await using` counts. What is settled is charged at the reservation's own time; where that has
 * left the window, it changes nothing.
 */
export class Reservation implements AsyncDisposable {
  /** Denied: nothing was taken, and settling does nothing. */
  readonly decision: Decision;
  readonly cost: number;
  readonly #charge: (difference: number) => Promise<void>;
  #settled: Promise<void> | undefined;

  constructor(decision: Decision, cost: number, charge: (difference: number) => Promise<void>) {
    this.decision = decision;
    this.cost = cost;
    this.#charge = charge;
  }

  /** Charges what it really cost: more becomes a debt, less is given back. */
  async settle(actual: number): Promise<void> {
    wholeNumber("INVALID_COST", "What a reservation settles to", actual, 0);
    if (!this.decision.allowed) return;
    this.#settled ??= actual === this.cost ? Promise.resolve() : this.#charge(actual - this.cost);
    await this.#settled;
  }

  /** Gives everything back. */
  async cancel(): Promise<void> {
    await this.settle(0);
  }

  /** Leaving the scope unsettled gives everything back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.cancel();
  }
}
