// The core of every guard, for those who write an adapter or tell decisions in a protocol of their own.
export { createGuard, type Guard, type Platform, type Verdict } from "./guard.js";
export { rateLimitHeaders, retryAfterSeconds } from "./headers.js";
export { type ClientOf, clientReader, type ReadHeader } from "./proxy.js";
export { refusalOf } from "./refusal.js";
export type * from "./types.js";
