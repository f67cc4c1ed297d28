export type { AiSdkMiddleware } from "./aiSdk.js";
export type { Subject } from "./amounts.js";
export {
  type Budget,
  type BudgetOptions,
  createBudget,
  type ReserveOptions,
  type Run,
  type RunCaps,
} from "./budget.js";
export type { EstimateOptions } from "./estimate.js";
export type { FetchOptions } from "./fetch.js";
export type { HookOptions, HookSubject } from "./hook.js";
export type { Limit, Unit } from "./limits.js";
export type { Price, Prices } from "./prices.js";
export type { BudgetReservation } from "./reservation.js";
export type { Usage } from "./usage.js";
