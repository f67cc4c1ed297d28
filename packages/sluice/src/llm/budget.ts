import type { RuleStatus } from "../decision.js";
import { type Duration, milliseconds } from "../duration.js";
import { checkNames, SluiceError, show, wholeNumber } from "../errors.js";
import { checkName } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { RECHECK_MS, WaitingLines, type WaitOptions } from "../waiting.js";
import type { AiSdkMiddleware } from "./aiSdk.js";
import type { Subject } from "./amounts.js";
import { type EstimateOptions, Estimator } from "./estimate.js";
import type { FetchOptions } from "./fetch.js";
import type { HookOptions, HookSubject } from "./hook.js";
import { LimitedBudget, type Shared } from "./limitedBudget.js";
import { type Limit, leaseOf, storedLimits } from "./limits.js";
import { pauseRule } from "./pause.js";
import { type Prices, PriceTable } from "./prices.js";
import { Renewals } from "./renewals.js";
import type { BudgetReservation } from "./reservation.js";

export interface BudgetOptions {
  /** All of them must allow, and all are charged or none. */
  readonly limits: readonly Limit[];
  /** Where counts are kept: in this process unless told. */
  readonly store?: Store;
  /** Budgets of one name on one store share their counts; "llm" unless told. */
  readonly name?: string;
  /** Dollars per million tokens, by model; needed where a limit counts dollars. */
  readonly prices?: Prices;
  readonly estimate?: EstimateOptions;
  /** Which part of a subject keeps a call's counts together in Redis Cluster; by default, all on one node. */
  readonly partition?: string;
  /** How many calls may wait at a time: 10,000 unless told. */
  readonly maxWaiting?: number;
  /**
   * For how long what a call has reserved is held when its process says nothing any more: 2 minutes unless told. A
   * process that lives renews it, so this is how long a crash is felt.
   */
  readonly lease?: Duration;
}

/** How `reserve` waits. */
export interface ReserveOptions extends WaitOptions {
  /** Higher goes first: each step counts as having come ten seconds earlier. 0 unless told. */
  readonly priority?: number;
}

/** The most that one run of an agent may use, all its calls together. */
export interface RunCaps {
  /** The run's name, where several processes work on it; made up unless told. */
  readonly id?: string;
  readonly tokens?: number;
  readonly usd?: number;
  /** How many calls. */
  readonly steps?: number;
}

/** Requests, tokens, dollars and parallel calls limited together, the true cost known only afterwards. */
export interface Budget {
  /**
   * Waits until all limits have room and takes it; first come first served within a priority. Rejects with
   * `TIMEOUT` (its `decision` names the limit and `retryAfterMs`), with the signal's reason, with
   * `QUEUE_FULL`, or at once with `NEVER_FITS`, `UNKNOWN_MODEL` or `RUN_OVER`; then nothing is charged.
   */
  reserve(subject: Subject, options?: ReserveOptions): Promise<BudgetReservation>;
  /** Takes it now or not at all: `allowed`, and a `decision` that names the limit and when to try again. */
  tryReserve(subject: Subject): Promise<BudgetReservation>;
  /** What each limit holds for a subject. */
  status(subject: Subject): Promise<readonly RuleStatus[]>;
  /**
   * Lets nobody through to this upstream for so long, in all processes: what a 429 asks for. With a
   * `partition`, the subject tells whose.
   */
  pause(upstream: string, ms: number, subject?: Subject): Promise<void>;
  /** The same budget with a cap on top that refuses with `RUN_OVER`, to stop an agent's loop. */
  run(caps: RunCaps): Run;
  /** A `fetch` for OpenAI-, Anthropic- and Azure-shaped APIs that reserves, settles and learns. */
  fetch(subject?: HookSubject, options?: FetchOptions): typeof globalThis.fetch;
  /** Middleware for `wrapLanguageModel` of the AI SDK. */
  aiSdk(subject?: HookSubject, options?: HookOptions): AiSdkMiddleware;
  /** Rejects those who wait, refuses further calls, and closes the store if the budget made it. */
  close(): Promise<void>;
}

/** A budget for one run of an agent. */
export interface Run extends Budget {
  readonly id: string;
}

/** A budget; bad limits are refused with a `SluiceError` at once. */
export function createBudget(options: BudgetOptions): Budget {
  if (typeof options !== "object" || options === null) {
    throw new SluiceError("INVALID_OPTION", `createBudget takes { limits, store? }; got ${show(options)}.`);
  }
  checkNames("INVALID_OPTION", "createBudget", options, [
    "limits",
    "store",
    "name",
    "prices",
    "estimate",
    "partition",
    "maxWaiting",
    "lease",
  ] satisfies (keyof BudgetOptions)[]);
  const { store = memoryStore(), maxWaiting = 10_000, partition } = options;
  const name = checkName("A budget's name", options.name ?? "llm");
  const lease = milliseconds("A budget's lease", options.lease ?? "2m");
  const limits = storedLimits(name, options.limits, lease);
  const shared: Shared = {
    name,
    store,
    ownsStore: options.store === undefined,
    partition: partition && checkName("A budget's partition", partition),
    prices: new PriceTable(options.prices ?? {}),
    estimator: new Estimator(options.estimate),
    // What other processes give back is not told here.
    lines: new WaitingLines(
      store,
      wholeNumber("INVALID_OPTION", "maxWaiting", maxWaiting, 0),
      store.sync ? undefined : RECHECK_MS,
    ),
    lease,
    renewals: new Renewals(Math.min(lease, ...limits.map(({ rule }) => leaseOf(rule))) / 3),
    pauseRule: pauseRule(name),
    closed: false,
  };
  return new LimitedBudget(shared, limits, {});
}
