export type { AlgorithmName } from "./algorithms/index.js";
export { combine, type Decision, type RuleDecision, type RuleStatus } from "./decision.js";
export type { Duration } from "./duration.js";
export { SluiceError, type SluiceErrorCode } from "./errors.js";
export type { Key } from "./key.js";
export {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type Period,
  type RequestOptions,
} from "./limiter.js";
export type { Reservation } from "./reservation.js";
export {
  type BucketOptions,
  type ConcurrentOptions,
  concurrent,
  fixedWindow,
  leakyBucket,
  type Rule,
  type RuleInput,
  type RuleOptions,
  rule,
  type SlidingCellsOptions,
  type SlidingLogOptions,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "./rule.js";
export type { Charge, Count, Entry, MaybePromise, Settlement, Store, StoredRule } from "./store.js";
export { storedRules } from "./storedRules.js";
export { type MemoryStoreOptions, memoryStore } from "./stores/memory.js";
export {
  type OutagePolicy,
  type ResilientEvents,
  type ResilientOptions,
  resilient,
} from "./stores/resilient.js";
export { type TieredOptions, tiered } from "./stores/tiered.js";
export type { AcquireOptions } from "./waiting.js";
