import type { Decision } from "./decision.js";
import { wholeNumber } from "./errors.js";

/** Makes what was charged what it really cost; told nothing, begins the leases anew: false when one has ended. */
type Settle = (actual?: number) => Promise<boolean>;

/**
 * A cost taken now and settled later. Only the first of `settle`, `cancel` and leaving the scope of
 * an `await using` counts. What is settled is charged at the reservation's own time; where that has
 * left the window, it changes nothing. Slots of `concurrent` rules are given back whatever is settled.
 */
export class Reservation implements AsyncDisposable {
  /** Denied: nothing was taken, and settling does nothing. */
  readonly decision: Decision;
  readonly cost: number;
  readonly #settle: Settle;
  #settled: Promise<boolean> | undefined;

  constructor(decision: Decision, cost: number, settle: Settle) {
    this.decision = decision;
    this.cost = cost;
    this.#settle = settle;
  }

  /** Charges what it really cost: more becomes a debt, less is given back. */
  async settle(actual: number): Promise<void> {
    wholeNumber("INVALID_COST", "What a reservation settles to", actual, 0);
    if (!this.decision.allowed) return;
    this.#settled ??= this.#settle(actual);
    await this.#settled;
  }

  /** Gives everything back. */
  async cancel(): Promise<void> {
    await this.settle(0);
  }

  /**
   * Begins the leases anew, of `concurrent` rules and of windows with one; call it while work goes on. False when
   * it holds nothing any more, or not all: it is settled, or a lease has ended and what it held may be another's.
   */
  async renew(): Promise<boolean> {
    return this.decision.allowed && this.#settled === undefined && this.#settle();
  }

  /** Leaving the scope unsettled gives everything back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.cancel();
  }
}
