// The engine under every adapter: whom a request counts for, what the limiter says, what the client is told.
// It knows nothing of frameworks or of Node; an adapter reads requests for it and carries out its verdicts.
import { combine, type Decision } from "../decision.js";
import { SluiceError, show, wholeNumber } from "../errors.js";
import type { Key } from "../key.js";
import { createLimiter, type Limiter } from "../limiter.js";
import type { Reservation } from "../reservation.js";
import { checkName, slidingLog } from "../rule.js";
import type { MaybePromise } from "../store.js";
import { HEADER_FORMATS, type Header, type HeaderFormat, rateLimitHeaders } from "./headers.js";
import { keyReader } from "./key.js";
import type { Answer, GuardOptions } from "./options.js";
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
  return new RequestGuard(options, platform);
}

class RequestGuard<Request> implements Guard<Request> {
  readonly #options: GuardOptions<Request>;
  readonly #platform: Platform<Request>;
  readonly #limiter: Limiter | ((request: Request) => MaybePromise<Limiter>);
  readonly #keyOf: (request: Request) => Key;
  readonly #format: HeaderFormat;
  readonly #timeoutMs: number;
  #isQuiet = false;

  constructor(options: GuardOptions<Request>, platform: Platform<Request>) {
    this.#options = checkOptions(options);
    this.#platform = platform;
    this.#limiter = limiterFrom(options);
    this.#format = options.headers ?? "draft-11";
    this.#timeoutMs = wholeNumber("INVALID_OPTION", "timeoutMs", options.timeoutMs ?? 1000, 1, 2 ** 31 - 1);

    const clientOf = clientReader<Request>(options, platform.header);
    const ip = (request: Request) => clientOf(request, platform.peer(request)) ?? refuseUnknown();
    const { keyOf, parts } = keyReader(options.key, { ip, header: platform.header, route: platform.route });
    if (typeof this.#limiter !== "function" && parts) checkParts(this.#limiter, parts);
    this.#keyOf = keyOf;
  }

  admit(request: Request, previous?: GuardDecision): MaybePromise<Verdict | undefined> {
    const { skip } = this.#options;
    if (skip === undefined) return this.#choose(request, previous);
    const skips = skip(request);
    if (!isPromise(skips)) return skips ? undefined : this.#choose(request, previous);
    return Promise.resolve(skips).then((skips) => (skips ? undefined : this.#choose(request, previous)));
  }

  #choose(request: Request, previous: GuardDecision | undefined): MaybePromise<Verdict> {
    const { cost = 1 } = this.#options;
    const limiter = this.#limiter;
    const key = this.#keyOf(request);
    if (typeof limiter !== "function" && typeof cost === "number") {
      return this.#decide(request, previous, limiter, key, cost);
    }
    const chosen = typeof limiter === "function" ? limiter(request) : limiter;
    const units = typeof cost === "function" ? cost(request) : cost;
    if (!isPromise(chosen) && !isPromise(units)) return this.#decide(request, previous, chosen, key, units);
    return Promise.all([chosen, units]).then(([chosen, units]) =>
      this.#decide(request, previous, chosen, key, units),
    );
  }

  #decide(
    request: Request,
    previous: GuardDecision | undefined,
    limiter: Limiter,
    key: Key,
    cost: number,
  ): MaybePromise<Verdict> {
    if (!limiter.sync || this.#options.settle) return this.#reserve(request, previous, limiter, key, cost);
    let decision: Decision;
    try {
      decision = limiter.tryAcquireSync(key, cost);
    } catch (error) {
      decision = this.#outage(request, limiter, error);
    }
    return this.#verdict(request, previous, limiter, decision, undefined);
  }

  /** Asks a store that may be slow or dead: whatever it does, there is a verdict in time. */
  async #reserve(
    request: Request,
    previous: GuardDecision | undefined,
    limiter: Limiter,
    key: Key,
    cost: number,
  ): Promise<Verdict> {
    const pending = limiter.reserve(key, cost);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const text = `The store did not answer within ${this.#timeoutMs} ms; see \`timeoutMs\` and \`onOutage\`.`;
      timer = setTimeout(() => reject(new SluiceError("TIMEOUT", text)), this.#timeoutMs);
    });
    let reservation: Reservation | undefined;
    let decision: Decision;
    try {
      reservation = await Promise.race([pending, late]);
      decision = reservation.decision;
    } catch (error) {
      decision = this.#outage(request, limiter, error);
      // A charge that comes through after all is right for a request that passed, and for no other.
      pending.then((made) => (decision.allowed ? undefined : made.cancel())).catch(() => {});
    } finally {
      clearTimeout(timer);
    }
    return this.#verdict(request, previous, limiter, decision, reservation);
  }

  /** What the policy decides in the store's place. Misuse is no outage: it goes to whoever called. */
  #outage(request: Request, limiter: Limiter, error: unknown): Decision {
    if (error instanceof SluiceError && /^INVALID_|^NOT_SYNC$/.test(error.code)) throw error;
    this.report(error, request);
    const { onOutage: degraded = "open" } = this.#options;
    const { name: rule = "", limit = 0 } = limiter.rules[0] ?? {};
    const numbers = { remaining: 0, retryAfterMs: 0, resetAfterMs: 0 };
    return { allowed: degraded === "open", rule, limit, ...numbers, rules: [], degraded };
  }

  #verdict(
    request: Request,
    previous: GuardDecision | undefined,
    limiter: Limiter,
    own: Decision,
    reservation: Reservation | undefined,
  ): MaybePromise<Verdict> {
    const { refuse, exposeHeaders, unit } = this.#options;
    const ownHeaders = rateLimitHeaders(this.#format, own, limiter.rules, unit);
    const decision =
      previous === undefined ? withHeaders(own, ownHeaders) : joined(previous, own, ownHeaders);
    const expose =
      exposeHeaders && this.#platform.header(request, "origin") !== undefined
        ? [...ownHeaders.map(([name]) => name), "Retry-After"].join(", ")
        : undefined;
    if (own.allowed) {
      const settle = reservation && this.#settlement(request, reservation);
      return { decision, refusal: undefined, expose, settle };
    }
    const refusal = refusalOf(own, limiter.rules, unit);
    const refused = refuse ? refuse(refusal, own, request) : refusal;
    if (!isPromise(refused)) return { decision, refusal: refused, expose, settle: undefined };
    return Promise.resolve(refused).then((refusal) => ({ decision, refusal, expose, settle: undefined }));
  }

  #settlement(request: Request, reservation: Reservation): ((answer: Answer) => void) | undefined {
    const { settle } = this.#options;
    if (settle === undefined) return undefined;
    let isSettled = false;
    return (answer) => {
      if (isSettled) return;
      isSettled = true;
      const settled = (async () => reservation.settle(await settle(answer, request)))();
      settled.catch((error: unknown) => this.report(error, request));
    };
  }

  report(error: unknown, request: Request): void {
    const { onError } = this.#options;
    if (onError) {
      try {
        onError(error, request);
      } catch {} // Whoever is told of failures cannot make another of them.
    } else if (!this.#isQuiet) {
      this.#isQuiet = true;
      console.warn("sluice: a guard failed; pass `onError` to be told of every failure.", error);
    }
  }
}

function checkOptions<Request>(options: GuardOptions<Request>): GuardOptions<Request> {
  if (typeof options !== "object" || options === null) {
    refuse(`A guard takes { limiter } or { limit, window }; got ${show(options)}`);
  }
  const { headers = "draft-11", onOutage = "open", unit, cost = 1 } = options;
  if (!HEADER_FORMATS.includes(headers)) {
    refuse(`headers must be one of ${HEADER_FORMATS.map(show).join(", ")}; got ${show(headers)}`);
  }
  if (onOutage !== "open" && onOutage !== "closed") {
    refuse(`onOutage must be "open" or "closed"; got ${show(onOutage)}`);
  }
  for (const name of ["skip", "refuse", "settle", "onError"] as const) {
    const value = options[name];
    if (value !== undefined && typeof value !== "function") {
      refuse(`${name} must be a function; got ${show(value)}`);
    }
  }
  if (typeof cost !== "function") wholeNumber("INVALID_COST", "A guard's cost", cost, 0);
  if (unit !== undefined) checkName("A guard's unit", unit);
  return options;
}

/** What a guard with these options counts with; a rule becomes a limiter of its own. */
export function limiterFrom<Request>(
  options: GuardOptions<Request>,
): Limiter | ((request: Request) => MaybePromise<Limiter>) {
  const { limiter, limit, window } = options;
  if (limiter === undefined) {
    if (limit === undefined || window === undefined) {
      refuse('A guard needs a limiter, or a limit and a window, such as { limit: 100, window: "1m" }');
    }
    return createLimiter({ rules: slidingLog({ limit, window }) });
  }
  if (limit !== undefined || window !== undefined) refuse("A guard takes a limiter or a limit, not both");
  if (typeof limiter !== "function" && typeof limiter?.reserve !== "function") {
    refuse(`limiter must be made by createLimiter, or be a function that chooses one; got ${show(limiter)}`);
  }
  return limiter;
}

/** Finds out at the start, rather than at each request, that a rule counts by what the key lacks. */
function checkParts(limiter: Limiter, parts: readonly string[]): void {
  for (const { name, by = [] } of limiter.rules) {
    const missing = by.filter((part) => !parts.includes(part));
    if (missing.length > 0) {
      refuse(
        `Rule "${name}" counts by ${by.join(", ")}, but the guard's key has no ${missing.join(", ")}; ` +
          `name its parts, such as key: ["ip"] or key: { user: (request) => request.user.id }`,
      );
    }
  }
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

function isPromise<T>(value: MaybePromise<T> | undefined): value is Promise<T> {
  return typeof value === "object" && value !== null && typeof (value as Promise<T>).then === "function";
}

function refuseUnknown(): never {
  throw new SluiceError(
    "NO_ADDRESS",
    "The request's client has no known address, so it cannot be counted by it. Behind a proxy, or on a Unix socket, " +
      "set trustProxy; elsewhere give the guard a key or, where it takes one, a `peer` function.",
  );
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_OPTION", `${message}.`);
}
