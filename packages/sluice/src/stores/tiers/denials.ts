import type { RuleDecision } from "../../decision.js";
import { onAnyClock } from "./leasing.js";

/** Of so many different costs the denials of one key are remembered exactly. */
const COSTS = 8;

interface Denial {
  readonly cost: number;
  readonly decisions: readonly RuleDecision[];
  readonly toldAt: number;
  /** Surely still denied before this time, unless something is given back. */
  readonly until: number;
}

/**
 * What one key was refused. A cost that was refused until some time is refused until then without
 * asking; so is a larger one that was not asked for itself, once enough different ones were.
 */
export class Denials {
  #denials: Denial[] = [];

  /** `askedAt` and `toldAt` are this process's times before and after the remote decided. */
  add(
    cost: number,
    decisions: readonly RuleDecision[],
    askedAt: number,
    toldAt: number,
    staleMs: number,
  ): void {
    const waitMs = Math.max(...decisions.map((decision) => decision.retryAfterMs));
    const until = askedAt + Math.min(onAnyClock(waitMs), staleMs);
    const others = this.#denials.filter((denial) => denial.cost !== cost && denial.until > toldAt);
    if (others.length < COSTS) this.#denials = [...others, { cost, decisions, toldAt, until }];
  }

  /** What the remote would answer to this cost, where that is known. */
  find(cost: number, now: number): readonly RuleDecision[] | undefined {
    let best: Denial | undefined;
    for (const denial of this.#denials) {
      if (now >= denial.until || denial.cost > cost) continue;
      if (denial.cost === cost) return aged(denial, now);
      if (best === undefined || denial.cost > best.cost) best = denial;
    }
    if (best === undefined || this.#denials.length < COSTS) return undefined;
    return aged(best, now);
  }
}

function aged({ cost, decisions, toldAt }: Denial, now: number): readonly RuleDecision[] {
  const since = now - toldAt;
  return decisions.map((decision) => {
    const waitMs = Math.max(0, Math.ceil(decision.retryAfterMs - since));
    const { remaining } = decision;
    return {
      ...decision,
      allowed: waitMs === 0,
      // A rule that would allow by now has room for at least the cost.
      remaining: waitMs === 0 ? Math.max(remaining, cost) : remaining,
      retryAfterMs: waitMs,
      resetAfterMs: Math.max(0, Math.ceil(decision.resetAfterMs - since)),
      at: decision.at + Math.floor(since),
    };
  });
}
