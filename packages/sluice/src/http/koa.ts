import type { Context, Middleware } from "koa";
import { createGuard, type GuardDecision, type Platform } from "./guard.js";
import { nodePlatform, settleAtEnd } from "./nodeResponse.js";
import type { GuardOptions } from "./options.js";

export type * from "./types.js";

export type RateLimitOptions = GuardOptions<Context>;

/** What a guard leaves in `ctx.state`. */
export interface RateLimitState {
  /** What the guards of this request decided; undefined when it was skipped. */
  rateLimit?: GuardDecision;
}

const platform: Platform<Context> = {
  peer: ({ req }) => nodePlatform.peer(req),
  header: ({ req }, name) => nodePlatform.header(req, name),
  // Koa has no routes of its own; its routers leave the pattern here once they have found it.
  route: ({ _matchedRoute }) => String(_matchedRoute ?? "/"),
};

/**
 * Guards a Koa app or route: only admitted requests go on, and all answers carry the headers, those to
 * errors too. What the guard cannot judge (a `key` that throws) is thrown, as errors are in Koa.
 */
export function rateLimit(options: RateLimitOptions): Middleware<RateLimitState> {
  const guard = createGuard(options, platform);
  return async (context, next) => {
    const verdict = await guard.admit(context, context.state.rateLimit);
    if (verdict === undefined) return next();
    const { decision, expose, refusal, settle } = verdict;
    context.state.rateLimit = decision;
    if (settle) settleAtEnd(context.req, context.res, settle);
    if (context.headerSent) return refusal ? undefined : next();
    for (const [name, value] of decision.headers) context.set(name, value);
    if (expose !== undefined) context.append("Access-Control-Expose-Headers", expose);
    if (refusal) {
      context.status = refusal.status;
      context.body = refusal.body;
      context.set(refusal.headers);
      return undefined;
    }
    try {
      return await next();
    } catch (error) {
      // Koa drops all headers when it answers an error, except those that the error brings.
      if (error instanceof Error) {
        const thrown = error as Error & { headers?: Record<string, string> };
        thrown.headers = { ...Object.fromEntries(context.state.rateLimit?.headers ?? []), ...thrown.headers };
      }
      throw error;
    }
  };
}
