// The engine under every adapter: whom a request counts for, what the limiter says, what the client is told.
// It knows nothing of frameworks or of Node; an adapter reads requests for it and carries out its verdicts.
import { combine, type Decision } from "../decision.js";
import { SluiceError } from "../errors.js";
import { type Key, keyFor } from "../key.js";
import type { MaybePromise } from "../store.js";
import { type Counter, counterFrom, type Reserved } from "./counter.js";
import { type Header, rateLimitHeaders } from "./headers.js";
import { keyReader } from "./key.js";
import { type Answer, checkOptions, type GuardOptions } from "./options.js";
import { clientReader } from "./proxy.js";
import { type Refusal, refusalOf } from "./refusal.js";

/** How an adapter reads the requests of its framework. */
export interface Platform<Request> {
  /** The address of the socket's other end; undefined when there is none to know. */
  peer(request: Request): string | undefined;
  header(request: Request, name: string): string | undefined;
  /** The pattern of the route, where the framework has routes. */
  route?(request: Request): string;
}

/** A decision as it stands on a request: of all its guards so far, with the headers that tell of it. */
export interface GuardDecision extends Decision {
  readonly headers: readonly Header[];
}

/** What an adapter does with a request: send the headers, then refuse it, or pass it on. */
export interface Verdict {
  readonly decision: GuardDecision;
  /** Set when the request is not to pass. */
  readonly refusal: Refusal | undefined;
  /** What to add to Access-Control-Expose-Headers. */
  readonly expose: string | undefined;
  /** Set when an admitted request is charged once it has ended; calls after the first do nothing. */
  readonly settle: ((answer: Answer) => void) | undefined;
}

export interface Guard<Request> {
  /**
   * Judges a request, at once where everything is local; undefined when it is skipped. `previous` is what
   * guards before this one left on the request. Fails on misuse alone: the store's failures are judged by policy.
   */
  admit(request: Request, previous?: GuardDecision | undefined): MaybePromise<Verdict | undefined>;
  /** Tells `onError` of a failure, or prints the first one; never throws. */
  report(error: unknown, request: Request): void;
}

/** A guard for requests that the platform can read; bad options are refused with a `SluiceError` at once. */
export function createGuard<Request>(
  options: GuardOptions<Request>,
  platform: Platform<Request>,
): Guard<Request> {
  const counter = counterFrom(options);
  checkOptions(options);
  const { skip, cost = 1, refuse, settle, exposeHeaders, unit, onError = printFirst() } = options;
  const { headers: format = "draft-11", onOutage = "open", timeoutMs = 1000 } = options;
  const clientOf = clientReader<Request>(options, platform.header);
  const ip = (request: Request) => clientOf(request, platform.peer(request)) ?? refuseUnknown();
  const { keyOf, sample } = keyReader(options.key, { ...platform, ip });
  // A rule that counts by what the key lacks is found out now, rather than at each request.
  if (typeof counter !== "function" && sample) for (const rule of counter.rules) keyFor(rule, sample);

  function admit(request: Request, previous?: GuardDecision): MaybePromise<Verdict | undefined> {
    // What most guards are told is all there, so that a request is judged without anything made for it on the way.
    if (skip === undefined && typeof counter !== "function" && typeof cost === "number") {
      return decide(request, previous, counter, cost);
    }
    return then(skip?.(request), (skips) => {
      if (skips) return undefined;
      return then(typeof counter === "function" ? counter(request) : counter, (counter) =>
        then(typeof cost === "function" ? cost(request) : cost, (cost) =>
          decide(request, previous, counter, cost),
        ),
      );
    });
  }

  function decide(
    request: Request,
    previous: GuardDecision | undefined,
    counter: Counter,
    cost: number,
  ): MaybePromise<Verdict> {
    const key = keyOf(request);
    if (!counter.sync || settle) return reserve(request, previous, counter, key, cost);
    let decision: Decision;
    try {
      decision = counter.tryAcquireSync(key, cost);
    } catch (error) {
      decision = outage(request, counter, error);
    }
    return verdict(request, previous, counter, decision);
  }

  /** Asks a store that may be slow or dead: whatever it does, there is a verdict in time. */
  async function reserve(
    request: Request,
    previous: GuardDecision | undefined,
    counter: Counter,
    key: Key,
    cost: number,
  ): Promise<Verdict> {
    const pending = counter.reserve(key, cost);
    let reservation: Reserved | undefined;
    let decision: Decision;
    try {
      reservation = await inTime(pending, timeoutMs);
      decision = reservation.decision;
    } catch (error) {
      decision = outage(request, counter, error);
      // A charge that comes through after all is right for a request that passed, and for no other.
      pending.then((made) => (decision.allowed ? undefined : made.settle(0))).catch(() => {});
    }
    return verdict(request, previous, counter, decision, reservation);
  }

  /** What the policy decides in the store's place. Misuse is no outage: it goes to whoever called. */
  function outage(request: Request, { rules }: Counter, error: unknown): Decision {
    if (error instanceof SluiceError && /^INVALID_|^NOT_SYNC$/.test(error.code)) throw error;
    report(error, request);
    const { name: rule = "", limit = 0 } = rules[0] ?? {};
    const numbers = { remaining: 0, retryAfterMs: 0, resetAfterMs: 0 };
    return { allowed: onOutage === "open", rule, limit, ...numbers, rules: [], degraded: onOutage };
  }

  function verdict(
    request: Request,
    previous: GuardDecision | undefined,
    { rules }: Counter,
    own: Decision,
    reservation?: Reserved,
  ): MaybePromise<Verdict> {
    const headers = rateLimitHeaders(format, own, rules, unit);
    const decision = previous ? joined(previous, own, headers) : { ...own, headers };
    const expose =
      exposeHeaders && platform.header(request, "origin") !== undefined
        ? [...headers.map(([name]) => name), "Retry-After"].join(", ")
        : undefined;
    if (own.allowed) {
      const settles = settle && reservation && settling(settle, reservation, request);
      return { decision, refusal: undefined, expose, settle: settles };
    }
    const refusal = refusalOf(own, rules, unit);
    const refused = (refusal: Refusal) => ({ decision, refusal, expose, settle: undefined });
    return then(refuse ? refuse(refusal, own, request) : refusal, refused);
  }

  function settling(
    settle: NonNullable<GuardOptions<Request>["settle"]>,
    reservation: Reserved,
    request: Request,
  ): (answer: Answer) => void {
    let isSettled = false;
    return async (answer) => {
      if (isSettled) return;
      isSettled = true;
      try {
        await reservation.settle(await settle(answer, request));
      } catch (error) {
        report(error, request);
      }
    };
  }

  function report(error: unknown, request: Request): void {
    try {
      onError(error, request);
    } catch {} // Whoever is told of failures cannot make another of them.
  }

  return { admit, report };
}

/**
 * Has a request judged and the verdict obeyed; then `pass` takes those that pass, and `fail` what is no verdict.
 * Exactly one of the two is called, or neither when the request is refused.
 */
export function judge<Request>(
  guard: Guard<Request>,
  request: Request,
  previous: GuardDecision | undefined,
  obey: (verdict: Verdict | undefined) => boolean,
  pass: () => void,
  fail: (error: unknown) => void,
): void {
  let passes: MaybePromise<boolean>;
  try {
    passes = then(guard.admit(request, previous), obey);
  } catch (error) {
    fail(error);
    return;
  }
  if (passes === true) pass();
  else if (passes) passes.then((passes) => passes && pass(), fail);
}

/** Goes on with a value at once where it is there, so that nothing local waits for a promise. */
function then<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  const isPromise = typeof (value as Partial<Promise<T>> | null | undefined)?.then === "function";
  return isPromise ? Promise.resolve(value).then(next) : next(value as T);
}

/** What the store answers, or an error when it takes too long. */
function inTime<T>(pending: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const text = `The store did not answer within timeoutMs, ${timeoutMs} ms.`;
    const timer = setTimeout(() => reject(new SluiceError("TIMEOUT", text)), timeoutMs);
    pending.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function printFirst(): (error: unknown) => void {
  let isQuiet = false;
  return (error) => {
    if (!isQuiet) console.warn("sluice: a guard failed; pass onError to be told of every failure.", error);
    isQuiet = true;
  };
}

/** One decision out of two guards': lists grow, single values are those of the binding rule. */
function joined(previous: GuardDecision, own: Decision, ownHeaders: readonly Header[]): GuardDecision {
  const rules = [...previous.rules, ...own.rules];
  const degraded = own.degraded ?? previous.degraded;
  const both = rules.length === 0 || !own.allowed ? { ...own, rules } : combine(rules);
  const binds = !own.allowed || (both.limit === own.limit && both.remaining === own.remaining);
  const headers = new Map(previous.headers);
  for (const [name, value] of ownHeaders) {
    const before = headers.get(name);
    // Retry-After speaks for the guard that refuses, so what is left elsewhere must not outlast it.
    const grows = name === "RateLimit-Policy" || (own.allowed && value.startsWith('"'));
    if (before && grows) headers.set(name, `${before}, ${value}`);
    else if (!before || binds) headers.set(name, value);
  }
  return { ...both, ...(degraded && { degraded }), headers: [...headers] };
}

function refuseUnknown(): never {
  throw new SluiceError(
    "NO_ADDRESS",
    "The client has no known address: behind a proxy or on a Unix socket set trustProxy, " +
      "elsewhere give the guard a key or a peer function.",
  );
}
