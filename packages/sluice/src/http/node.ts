import type { IncomingMessage, ServerResponse } from "node:http";
import { createGuard, type GuardDecision } from "./guard.js";
import { type GuardedMessage, guardMessage, nodePlatform, send } from "./nodeResponse.js";
import type { GuardOptions } from "./options.js";
import { faultRefusal } from "./refusal.js";

export type * from "./types.js";

/** A request of node:http with the decision that guards left on it; undefined when it was skipped. */
export type GuardedRequest = IncomingMessage & { readonly rateLimit?: GuardDecision };

export type RateLimitOptions = GuardOptions<GuardedRequest>;

/**
 * Guards a listener of node:http: only admitted requests reach it, and all answers carry the headers.
 * A guard that fails by itself (a `key` that throws) answers 500 and tells `onError`.
 */
export function rateLimit(
  options: RateLimitOptions,
  listener: (request: GuardedRequest, response: ServerResponse) => unknown,
): (request: IncomingMessage, response: ServerResponse) => void {
  const guard = createGuard<GuardedMessage>(options, nodePlatform);
  return (request, response) => {
    const pass = () => void listener(request, response);
    const fail = (error: unknown) => {
      guard.report(error, request);
      if (!response.headersSent) send(response, faultRefusal());
    };
    guardMessage(guard, request, response, pass, fail);
  };
}
