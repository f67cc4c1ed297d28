import type { Algorithm } from "./algorithm.js";
import { concurrent } from "./concurrent.js";
import { fixedWindow } from "./fixedWindow.js";
import { leakyBucket } from "./leakyBucket.js";
import { slidingCells } from "./slidingCells.js";
import { slidingCounter } from "./slidingCounter.js";
import { slidingLog } from "./slidingLog.js";
import { tokenBucket } from "./tokenBucket.js";

/** What a rule's `algorithm` may be; each has a page in docs/algorithms. */
export type AlgorithmName =
  | "slidingLog"
  | "slidingCells"
  | "slidingCounter"
  | "fixedWindow"
  | "tokenBucket"
  | "leakyBucket"
  | "concurrent";

/** Every algorithm by the name its rules carry. */
export const algorithms: Readonly<Record<AlgorithmName, Algorithm<unknown, unknown>>> = {
  slidingLog,
  slidingCells,
  slidingCounter,
  fixedWindow,
  tokenBucket,
  leakyBucket,
  concurrent,
};
