// The engine under every adapter: whom a request counts for, what the limiter says, what the client is told.
// It knows nothing of frameworks or of Node; an adapter reads requests for it and carries out its verdicts.
import { combine, type Decision } from "../decision.js";
import { SluiceError, wholeNumber } from "../errors.js";
import type { Key } from "../key.js";
import type { Reservation } from "../reservation.js";
import type { MaybePromise } from "../store.js";
import { type Counter, counterFrom } from "./counter.js";
import { type Header, rateLimitHeaders } from "./headers.js";
import { keyReader } from "./key.js";
import { type Answer, checkOptions, checkParts, type GuardOptions } from "./options.js";
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
  checkOptions(options);
  const { skip, cost = 1, refuse, settle, exposeHeaders, unit } = options;
  const { headers: format = "draft-11", onOutage = "open" } = options;
  const timeoutMs = wholeNumber("INVALID_OPTION", "timeoutMs", options.timeoutMs ?? 1000, 1, 2 ** 31 - 1);
  const counter = counterFrom(options);
  const clientOf = clientReader<Request>(options, platform.header);
  const ip = (request: Request) => clientOf(request, platform.peer(request)) ?? refuseUnknown();
  const { keyOf, parts } = keyReader(options.key, { ip, header: platform.header, route: platform.route });
  if (typeof counter !== "function" && parts) checkParts(counter.rules, parts);
  const report = reporter(options.onError);

  function choose(request: Request, previous: GuardDecision | undefined): MaybePromise<Verdict> {
    const key = keyOf(request);
    if (typeof counter !== "function" && typeof cost === "number") {
      return decide(request, previous, counter, key, cost);
    }
    return then(typeof counter === "function" ? counter(request) : counter, (chosen) =>
      then(typeof cost === "function" ? cost(request) : cost, (units) =>
        decide(request, previous, chosen, key, units),
      ),
    );
  }

  function decide(
    request: Request,
    previous: GuardDecision | undefined,
    counter: Counter,
    key: Key,
    cost: number,
  ): MaybePromise<Verdict> {
    if (!counter.sync || settle) return reserve(request, previous, counter, key, cost);
    let decision: Decision;
    try {
      decision = counter.tryAcquireSync(key, cost);
    } catch (error) {
      decision = outage(request, counter, error);
    }
    return verdict(request, previous, counter, decision, undefined);
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
    let reservation: Reservation | undefined;
    let decision: Decision;
    try {
      reservation = await inTime(pending, timeoutMs);
      decision = reservation.decision;
    } catch (error) {
      decision = outage(request, counter, error);
      // A charge that comes through after all is right for a request that passed, and for no other.
      pending.then((made) => (decision.allowed ? undefined : made.cancel())).catch(() => {});
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
    reservation: Reservation | undefined,
  ): MaybePromise<Verdict> {
    const ownHeaders = rateLimitHeaders(format, own, rules, unit);
    const decision =
      previous === undefined ? withHeaders(own, ownHeaders) : joined(previous, own, ownHeaders);
    const expose =
      exposeHeaders && platform.header(request, "origin") !== undefined
        ? [...ownHeaders.map(([name]) => name), "Retry-After"].join(", ")
        : undefined;
    if (own.allowed) {
      return {
        decision,
        refusal: undefined,
        expose,
        settle: settle && reservation && settlingOnce(reservation, settle, request, report),
      };
    }
    const refusal = refusalOf(own, rules, unit);
    return then(refuse ? refuse(refusal, own, request) : refusal, (refusal) => ({
      decision,
      refusal,
      expose,
      settle: undefined,
    }));
  }

  return {
    admit: (request, previous) =>
      skip === undefined
        ? choose(request, previous)
        : then(skip(request), (skips) => (skips ? undefined : choose(request, previous))),
    report,
  };
}

/** Goes on with a value at once where it is there, so that nothing local waits for a promise. */
function then<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  const isPromise =
    typeof value === "object" && value !== null && typeof (value as Promise<T>).then === "function";
  return isPromise ? Promise.resolve(value).then(next) : next(value as T);
}

/** What the store answers, or an error when it takes too long. */
async function inTime<T>(pending: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const text = `The store did not answer within ${timeoutMs} ms; see \`timeoutMs\` and \`onOutage\`.`;
    timer = setTimeout(() => reject(new SluiceError("TIMEOUT", text)), timeoutMs);
  });
  try {
    return await Promise.race([pending, late]);
  } finally {
    clearTimeout(timer);
  }
}

function settlingOnce<Request>(
  reservation: Reservation,
  settle: NonNullable<GuardOptions<Request>["settle"]>,
  request: Request,
  report: Guard<Request>["report"],
): (answer: Answer) => void {
  let isSettled = false;
  return (answer) => {
    if (isSettled) return;
    isSettled = true;
    const settled = (async () => reservation.settle(await settle(answer, request)))();
    settled.catch((error: unknown) => report(error, request));
  };
}

function reporter<Request>(onError: GuardOptions<Request>["onError"]): Guard<Request>["report"] {
  let isQuiet = false;
  return (error, request) => {
    if (onError) {
      try {
        onError(error, request);
      } catch {} // Whoever is told of failures cannot make another of them.
    } else if (!isQuiet) {
      isQuiet = true;
      console.warn("sluice: a guard failed; pass `onError` to be told of every failure.", error);
    }
  };
}

/** Spelled out, since a spread costs as much as all the rest of a decision. */
function withHeaders(decision: Decision, headers: readonly Header[]): GuardDecision {
  const { allowed, rule, limit, remaining, retryAfterMs, resetAfterMs, rules, degraded } = decision;
  const numbers = { allowed, rule, limit, remaining, retryAfterMs, resetAfterMs, rules, headers };
  return degraded === undefined ? numbers : { ...numbers, degraded };
}

/** One decision out of two guards': lists grow, single values are those of the binding rule. */
function joined(previous: GuardDecision, own: Decision, ownHeaders: readonly Header[]): GuardDecision {
  const rules = [...previous.rules, ...own.rules];
  const degraded = own.degraded ?? previous.degraded;
  const both = rules.length === 0 || !own.allowed ? { ...own, rules } : combine(rules);
  const binds = !own.allowed || (both.limit === own.limit && both.remaining === own.remaining);
  const headers: Header[] = [...previous.headers];
  for (const header of ownHeaders) {
    const [name, value] = header;
    const at = headers.findIndex(([known]) => known === name);
    const before = headers[at]?.[1];
    if (before === undefined) headers.push(header);
    // Retry-After speaks for the guard that refuses, so what is left elsewhere must not outlast it.
    else if (name === "RateLimit-Policy" || (own.allowed && value.startsWith('"')))
      headers[at] = [name, `${before}, ${value}`];
    else if (binds) headers[at] = header;
  }
  return { ...both, ...(degraded && { degraded }), headers };
}

function refuseUnknown(): never {
  throw new SluiceError(
    "NO_ADDRESS",
    "The request's client has no known address, so it cannot be counted by it. Behind a proxy, or on a Unix socket, " +
      "set trustProxy; elsewhere give the guard a key or, where it takes one, a `peer` function.",
  );
}
