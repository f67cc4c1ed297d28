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
const OUTAGE = {
  type: `${TYPES}temporary-reduced-capacity`,
  title: "Temporary reduced capacity",
  status: 503,
  detail: "Requests cannot be counted at the moment",
};

/**
 * The answer to a request that was not allowed: 429 naming the violated rules, with Retry-After rounded
 * up, or 503 when the store was out, which is never passed off as the client's fault.
 */
export function refusalOf(decision: Decision, rules: readonly Rule[], unit = "requests"): Refusal {
  const seconds = retryAfterSeconds(decision);
  const violated = rules.filter((_, i) => decision.rules[i]?.allowed === false);
  const limits = violated.map(({ limit, window }) => `${limit} ${unit} per ${window / 1000} s`).join(", ");
  const quota = {
    type: `${TYPES}quota-exceeded`,
    title: "Quota exceeded",
    status: 429,
    detail: seconds === undefined ? `${limits}; this request can never be allowed` : limits,
    "violated-policies": violated.map(({ name }) => name),
  };
  return problem(decision.degraded === "closed" ? OUTAGE : quota, seconds);
}

/** The answer to a request that the guard itself could not judge, where no framework takes the error. */
export function faultRefusal(): Refusal {
  return problem({ title: "Internal Server Error", status: 500 });
}

function problem(body: { readonly title: string; readonly status: number }, retryAfter = 0): Refusal {
  const headers: Record<string, string> = { "Content-Type": "application/problem+json" };
  if (retryAfter > 0) headers["Retry-After"] = String(retryAfter);
  return { status: body.status, headers, body: JSON.stringify(body) };
}
