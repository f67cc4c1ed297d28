import type { Context, MiddlewareHandler } from "hono";
import { createGuard, type GuardDecision, type Platform, type Verdict } from "./guard.js";
import type { GuardOptions } from "./options.js";
import { endingOf, refusedResponse, withVerdictHeaders } from "./webResponse.js";

export type * from "./types.js";

declare module "hono" {
  interface ContextVariableMap {
    /** What the guards of this request decided; undefined when it was skipped. */
    rateLimit: GuardDecision | undefined;
  }
}

export type RateLimitOptions = GuardOptions<Context> & {
  /**
   * The address a request came from: known on Node, Bun and Deno unless told. On Workers:
   * `(c) => c.req.header("cf-connecting-ip")`.
   */
  readonly peer?: (context: Context) => string | undefined;
};

/** What the servers of Node, Bun and Deno leave in `c.env`. */
interface Connection {
  readonly incoming?: { readonly socket: { readonly remoteAddress?: string } };
  readonly remoteAddr?: { readonly hostname?: string };
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
}

function peerOf({ env, req }: Context): string | undefined {
  const connection: Connection | undefined = env?.server ?? env;
  if (connection?.incoming) return connection.incoming.socket.remoteAddress ?? "gone";
  return connection?.remoteAddr?.hostname ?? connection?.requestIP?.(req.raw)?.address;
}

/**
 * Guards a Hono app or route: only admitted requests go on, and all responses carry the headers.
 * What the guard cannot judge (a `key` that throws) goes to `app.onError`.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler {
  const platform: Platform<Context> = {
    peer: options?.peer ?? peerOf,
    header: ({ req }, name) => req.header(name),
    route: ({ req }) => req.matchedRoutes.at(-1)?.path ?? "/",
  };
  const guard = createGuard(options, platform);
  return async (context, next) => {
    const admitted = guard.admit(context, context.get("rateLimit"));
    const verdict = admitted instanceof Promise ? await admitted : admitted;
    if (verdict === undefined) return next();
    context.set("rateLimit", verdict.decision);
    if (verdict.refusal) return refusedResponse(verdict);
    const ending = verdict.settle && endingOf(context.req.raw, verdict.settle);
    try {
      await next();
    } catch (error) {
      ending?.failed();
      throw error;
    }
    const { res } = context;
    const told = tell(verdict, context, res);
    const watched = ending ? ending.watch(told) : told;
    if (watched !== res) {
      context.res = undefined;
      context.res = watched;
    }
  };
}

function tell({ decision, expose }: Verdict, context: Context, response: Response): Response {
  // A guard further in has told of this one's decision with its own.
  const isLast = context.get("rateLimit") === decision;
  return withVerdictHeaders(response, isLast ? decision.headers : [], expose);
}
