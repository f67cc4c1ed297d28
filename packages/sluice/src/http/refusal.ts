// What a refused request is answered with, as plain data that every adapter sends in its own way.
import type { Decision } from "../decision.js";
import type { Rule } from "../rule.js";
import { retryAfterSeconds } from "./headers.js";

export interface Refusal {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const TYPES = "https://iana.org/assignments/http-problem-types#";

/**
 * The answer to a request that was not allowed: 429 naming the violated rules, with Retry-After rounded
 * up, or 503 when the store was out, which is never passed off as the client's fault.
 */
export function refusalOf(decision: Decision, rules: readonly Rule[], unit = "requests"): Refusal {
  const retryAfter = retryAfterSeconds(decision);
  if (decision.degraded === "closed") {
    return problem(503, retryAfter, {
      type: `${TYPES}temporary-reduced-capacity`,
      title: "Temporary reduced capacity",
      status: 503,
      detail: "Requests cannot be counted at the moment",
    });
  }
  const violated = decision.rules.map((rule, i) => ({ ...rule, window: rules[i]?.window ?? 0 }));
  const denying = violated.filter((rule) => !rule.allowed);
  const never = retryAfter === undefined ? "; this request asks for more than can ever be allowed" : "";
  const limits = denying.map(({ limit, window }) => `${limit} ${unit} per ${window / 1000} s`);
  return problem(429, retryAfter, {
    type: `${TYPES}quota-exceeded`,
    title: "Quota exceeded",
    status: 429,
    detail: limits.join(", ") + never,
    "violated-policies": denying.map(({ rule }) => rule),
  });
}

/** The answer to a request that the guard itself could not judge, where no framework takes the error. */
export function faultRefusal(): Refusal {
  return problem(500, undefined, { title: "Internal Server Error", status: 500 });
}

function problem(status: number, retryAfter: number | undefined, body: object): Refusal {
  const headers: Record<string, string> = { "Content-Type": "application/problem+json" };
  if (retryAfter !== undefined && retryAfter > 0) headers["Retry-After"] = String(retryAfter);
  return { status, headers, body: JSON.stringify(body) };
}
