// The types that every adapter's callers may want to name.
export type { GuardDecision } from "./guard.js";
export type { Header, HeaderFormat } from "./headers.js";
export type { KeyOption, NamedPart, PartOf } from "./key.js";
export type { Answer, CommonOptions, GuardOptions, LimiterOption } from "./options.js";
export type { AddressOptions, TrustProxy } from "./proxy.js";
export type { Refusal } from "./refusal.js";
