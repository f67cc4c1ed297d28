import { SluiceError } from "../errors.js";
import type { MaybePromise } from "../store.js";
import { createGuard, type GuardDecision, type Platform } from "./guard.js";
import type { GuardOptions } from "./options.js";
import { endingOf, refusedResponse, withVerdictHeaders } from "./webResponse.js";

export type * from "./types.js";

export type RateLimitOptions<Rest extends unknown[] = unknown[]> = GuardOptions<Request> & {
  /**
   * The address a request came from, which a Request does not know. Bun: `(request, server) =>
   * server.requestIP(request)?.address`; Deno: `(request, info) => info.remoteAddr.hostname`;
   * Workers: `(request) => request.headers.get("cf-connecting-ip") ?? undefined`. Or set `trustProxy`.
   */
  readonly peer?: (request: Request, ...rest: Rest) => string | undefined;
};

const decisions = new WeakMap<Request, GuardDecision>();

/** What the guards of this request decided; undefined when it was skipped, or has none. */
export function decisionOf(request: Request): GuardDecision | undefined {
  return decisions.get(request);
}

/**
 * Guards a fetch handler (Bun, Deno, Workers, Next.js, ...): only admitted requests reach it, and all
 * responses carry the headers. What the guard cannot judge (a `key` that throws) rejects.
 */
export function rateLimit<Rest extends unknown[]>(
  options: RateLimitOptions<Rest>,
  handler: (request: Request, ...rest: Rest) => MaybePromise<Response>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const { peer, ...rest } = options ?? {};
  const { key = "ip", trustProxy } = rest;
  if (key === "ip" && !peer && !trustProxy) {
    throw new SluiceError(
      "NO_ADDRESS",
      "A Request does not know where it came from: give the guard a `peer` function, `trustProxy`, or another `key`.",
    );
  }
  const rests = new WeakMap<Request, Rest>();
  const platform: Platform<Request> = {
    peer: (request) => peer?.(request, ...(rests.get(request) ?? ([] as unknown as Rest))),
    header: (request, name) => request.headers.get(name) ?? undefined,
  };
  const guard = createGuard(rest as GuardOptions<Request>, platform);
  return async (request, ...rest) => {
    if (peer) rests.set(request, rest);
    const verdict = await guard.admit(request, decisions.get(request));
    if (verdict === undefined) return handler(request, ...rest);
    const { decision, expose, refusal, settle } = verdict;
    decisions.set(request, decision);
    if (refusal) return refusedResponse(verdict);
    const ending = settle && endingOf(request, settle);
    let response: Response;
    try {
      response = await handler(request, ...rest);
    } catch (error) {
      ending?.failed();
      throw error;
    }
    // A guard further in has told of this one's decision with its own.
    const isLast = decisions.get(request) === decision;
    const told = withVerdictHeaders(response, isLast ? decision.headers : [], expose);
    return ending ? ending.watch(told) : told;
  };
}
