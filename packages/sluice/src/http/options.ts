// What a guard may be told, and what it refuses to be told.
import type { Decision } from "../decision.js";
import type { Duration } from "../duration.js";
import { checkNames, SluiceError, show, wholeNumber } from "../errors.js";
import type { Limiter } from "../limiter.js";
import { checkName } from "../rule.js";
import type { MaybePromise } from "../store.js";
import { HEADER_FORMATS, type HeaderFormat } from "./headers.js";
import type { KeyOption } from "./key.js";
import type { AddressOptions } from "./proxy.js";
import type { Refusal } from "./refusal.js";

/** How a request ended, told to `settle`. */
export interface Answer {
  /** The status that was sent; 499 when the client left before there was one. */
  readonly status: number;
  /** How many bytes of the body were handed to the connection. */
  readonly bytes: number;
  /** True when the client left before it had all of the answer. */
  readonly aborted: boolean;
}

/** What a guard counts with: a limiter, one chosen per request, or a rule kept in this process's memory. */
export type LimiterOption<Request> =
  | {
      readonly limiter: Limiter | ((request: Request) => MaybePromise<Limiter>);
      readonly limit?: never;
      readonly window?: never;
    }
  | { readonly limit: number; readonly window: Duration; readonly limiter?: never };

/** What every guard takes, besides what it counts with. */
export interface CommonOptions<Request> extends AddressOptions {
  /** Whom a request counts for: its client's address unless told. */
  readonly key?: KeyOption<Request>;
  /** What a request costs: 1 unless told. */
  readonly cost?: number | ((request: Request) => MaybePromise<number>);
  /** Requests for which this is true pass uncounted. */
  readonly skip?: (request: Request) => MaybePromise<boolean>;
  /** Which headers tell clients where they stand: `"draft-11"` unless told. */
  readonly headers?: HeaderFormat;
  /** What a cost counts, where that is not requests: `"content-bytes"`, or a word of your own. */
  readonly unit?: string;
  /** Lets scripts of other origins read the headers, by Access-Control-Expose-Headers. */
  readonly exposeHeaders?: boolean;
  /** Answers refused requests in another way; starts from what would have been sent. */
  readonly refuse?: (refusal: Refusal, decision: Decision, request: Request) => MaybePromise<Refusal>;
  /**
   * What the request really cost, told once its answer is sent or its client is gone. Until then `cost`
   * is taken, so that requests in parallel cannot slip past; if this throws, `cost` stays taken.
   */
  readonly settle?: (answer: Answer, request: Request) => MaybePromise<number>;
  /** What becomes of requests while the store fails: pass (`"open"`, the default), or 503 (`"closed"`). */
  readonly onOutage?: "open" | "closed";
  /** How long the store may take before it counts as failed: 1,000 unless told. */
  readonly timeoutMs?: number;
  /** Told of every failure of the store or of `settle`; by default the first one is printed. */
  readonly onError?: (error: unknown, request: Request) => void;
}

export type GuardOptions<Request> = CommonOptions<Request> & LimiterOption<Request>;

const NAMES: readonly string[] = [
  "limiter",
  "limit",
  "window",
  "key",
  "cost",
  "skip",
  "headers",
  "unit",
  "exposeHeaders",
  "trustProxy",
  "ipv6Prefix",
  "refuse",
  "settle",
  "onOutage",
  "timeoutMs",
  "onError",
] satisfies (keyof GuardOptions<unknown>)[];

/** Refuses what no guard knows: a `trustproxy` must not mean that no proxy is trusted. */
export function checkGuardNames(options: object): void {
  checkNames("INVALID_OPTION", "A guard", options, NAMES);
}

/** Refuses bad values, except of what others check where they use it. */
export function checkOptions<Request>(options: GuardOptions<Request>): void {
  checkGuardNames(options);
  const { headers = "draft-11", onOutage = "open", unit, cost = 1, timeoutMs = 1000 } = options;
  checkOneOf("headers", headers, HEADER_FORMATS);
  checkOneOf("onOutage", onOutage, ["open", "closed"]);
  for (const name of ["skip", "refuse", "settle", "onError"] as const) {
    const value = options[name];
    if (value !== undefined && typeof value !== "function") {
      refuseOption(`${name} must be a function; got ${show(value)}`);
    }
  }
  if (typeof cost !== "function") wholeNumber("INVALID_COST", "A guard's cost", cost, 0);
  wholeNumber("INVALID_OPTION", "timeoutMs", timeoutMs, 1, 2 ** 31 - 1);
  if (unit !== undefined) checkName("A guard's unit", unit);
}

function checkOneOf(name: string, value: unknown, allowed: readonly unknown[]): void {
  if (!allowed.includes(value)) {
    refuseOption(`${name} must be one of ${allowed.map(show).join(", ")}; got ${show(value)}`);
  }
}

export function refuseOption(message: string): never {
  throw new SluiceError("INVALID_OPTION", `${message}.`);
}
