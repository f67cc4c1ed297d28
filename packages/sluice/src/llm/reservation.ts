import type { Decision } from "../decision.js";
import { SluiceError, show } from "../errors.js";
import type { Renewals } from "./renewals.js";
import { readUsage, type Usage } from "./usage.js";

/** What a reservation does to its budget. */
export interface Effects {
  /** Charges the truth; with no usage, leaves what was reserved and gives the slots back. */
  settle(usage: Usage | undefined): Promise<void>;
  cancel(): Promise<void>;
  renew(): Promise<boolean>;
}

/**
 * What one call has taken of all its limits. Only the first of `settle`, `cancel` and leaving the scope of
 * an `await using` counts. What is settled is charged at the reservation's own time: where that has left a
 * window, it changes nothing there. Until then it is held, and renewed, as long as the process lives.
 */
export class BudgetReservation implements AsyncDisposable {
  /** Denied (`tryReserve` only): nothing was taken, and settling does nothing. Dollars are dollars here. */
  readonly decision: Decision;
  /** What was taken, as far as it is known by kind. */
  readonly reserved: Usage;
  readonly #effects: Effects;
  readonly #stopRenewing: () => void;
  #ended: Promise<void> | undefined;

  constructor(decision: Decision, reserved: Usage, effects: Effects, renewals: Renewals | undefined) {
    this.decision = decision;
    this.reserved = reserved;
    this.#effects = effects;
    this.#stopRenewing = (decision.allowed && renewals?.keep(this)) || (() => {});
  }

  get allowed(): boolean {
    return this.decision.allowed;
  }

  /**
   * Charges what the call really used, up or down, and gives its slot back. Takes the provider's own
   * `usage`, or the response with it. Without any, what was reserved stays charged; so it does, with
   * `UNKNOWN_USAGE`, when the usage has no shape that is known.
   */
  async settle(usage?: unknown): Promise<void> {
    const known = usage === undefined ? undefined : readUsage(usage);
    const isFirst = this.#ended === undefined;
    await this.#end(() => this.#effects.settle(known));
    if (isFirst && usage !== undefined && known === undefined) {
      throw new SluiceError(
        "UNKNOWN_USAGE",
        `Usage must be { inputTokens, outputTokens } or a provider's own; got ${show(usage)}. What was reserved stays charged.`,
      );
    }
  }

  /** Gives everything back. */
  async cancel(): Promise<void> {
    await this.#end(() => this.#effects.cancel());
  }

  /**
   * Begins its leases anew, which happens by itself while the process lives. False when it holds nothing any
   * more, or not all: it has ended, or the process was stopped for longer than the lease, and others may have taken
   * the room. `settle` then still charges what the call used.
   */
  async renew(): Promise<boolean> {
    return this.allowed && this.#ended === undefined && this.#effects.renew();
  }

  /** Leaving the scope unsettled gives everything back. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.cancel();
  }

  async #end(how: () => Promise<void>): Promise<void> {
    if (!this.allowed) return;
    this.#stopRenewing();
    this.#ended ??= how();
    await this.#ended;
  }
}
