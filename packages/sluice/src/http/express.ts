import type { Request, RequestHandler } from "express";
import { createGuard, type GuardDecision, type Platform } from "./guard.js";
import { guardMessage, nodePlatform } from "./nodeResponse.js";
import type { GuardOptions } from "./options.js";

export type * from "./types.js";

declare global {
  namespace Express {
    interface Request {
      /** What the guards of this request decided; undefined when it was skipped. */
      rateLimit?: GuardDecision;
    }
  }
}

export type RateLimitOptions = GuardOptions<Request>;

const platform: Platform<Request> = {
  ...nodePlatform,
  // Before a route is found there is only the path that the guard is mounted at.
  route: ({ baseUrl, route }) => `${baseUrl}${route?.path ?? ""}` || "/",
};

/**
 * Guards an Express 4 or 5 app, router or route: only admitted requests go on, and all answers carry the
 * headers. What the guard cannot judge (a `key` that throws) goes to `next(error)`.
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  const guard = createGuard(options, platform);
  return (request, response, next) => guardMessage(guard, request, response, next, next);
}
