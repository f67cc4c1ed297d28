// What a decision says in response headers: draft-ietf-httpapi-ratelimit-headers-11, and what came before it.
// Every value is made of digits, fixed words and checked names, so none can carry what a client sent.
import type { Decision, RuleDecision } from "../decision.js";
import type { Rule } from "../rule.js";

/** Which generation of headers is sent; `false` sends none. */
export type HeaderFormat = "draft-11" | "draft-7" | "draft-6" | "legacy" | false;

export type Header = readonly [name: string, value: string];

/** The formats there are, for checking options. */
export const HEADER_FORMATS: readonly HeaderFormat[] = ["draft-11", "draft-7", "draft-6", "legacy", false];

/**
 * The headers that tell a client of this decision. `rules` are those it was made by, in its order.
 * `unit` is what a cost counts, where that is not requests: "content-bytes", "tokens".
 */
export function rateLimitHeaders(
  format: HeaderFormat,
  decision: Decision,
  rules: readonly Rule[],
  unit?: string,
): readonly Header[] {
  const { limit, remaining, degraded } = decision;
  if (format === false || degraded === "open" || degraded === "closed") return [];
  const { policy, names } = fixedParts(format, rules, unit);
  if (format === "draft-11") return [policy, ["RateLimit", limits(decision, names)]];
  const reset = windowLeft(decision, decision);
  if (format === "draft-7") {
    return [policy, ["RateLimit", `limit=${limit}, remaining=${remaining}, reset=${reset}`]];
  }
  const isLegacy = format === "legacy";
  const values = {
    Limit: limit,
    Remaining: remaining,
    Reset: isLegacy ? reset + Math.ceil(Date.now() / 1000) : reset,
  };
  const headers = Object.entries(values).map(
    ([name, value]): Header => [`${isLegacy ? "X-" : ""}RateLimit-${name}`, String(value)],
  );
  return isLegacy ? headers : [policy, ...headers];
}

/** Whole seconds until the cost that was refused fits, rounded up; undefined when it never does. */
export function retryAfterSeconds(decision: { readonly retryAfterMs: number }): number | undefined {
  return Number.isFinite(decision.retryAfterMs) ? Math.ceil(decision.retryAfterMs / 1000) : undefined;
}

/** What changes with the rules alone, and those are the same for most requests. */
interface FixedParts {
  readonly format: HeaderFormat;
  readonly unit: string | undefined;
  readonly policy: Header;
  /** How each rule's item of RateLimit begins. */
  readonly names: readonly string[];
}

const known = new WeakMap<readonly Rule[], FixedParts>();

function fixedParts(format: HeaderFormat, rules: readonly Rule[], unit: string | undefined): FixedParts {
  const parts = known.get(rules);
  if (parts !== undefined && parts.format === format && parts.unit === unit) return parts;
  const inUnit = unit === undefined ? "" : `;qu="${unit}"`;
  const items = rules.map(({ name, limit, window }) =>
    format === "draft-11" ? `"${name}";q=${limit}${inUnit}${inSeconds(window)}` : limit + inSeconds(window),
  );
  const made: FixedParts = {
    format,
    unit,
    policy: ["RateLimit-Policy", items.join(", ")],
    names: rules.map(({ name }, i) => `${i === 0 ? "" : ", "}"${name}";r=`),
  };
  known.set(rules, made);
  return made;
}

/** Windows of less than a second cannot be told in seconds, and others are rounded up. */
function inSeconds(window: number): string {
  return window < 1000 ? "" : `;w=${Math.ceil(window / 1000)}`;
}

function limits(decision: Decision, names: readonly string[]): string {
  const { rules } = decision;
  let list = "";
  for (let i = 0; i < rules.length; i++) {
    const rule = rules[i] as RuleDecision;
    list += `${names[i]}${rule.remaining};t=${windowLeft(rule, decision)}`;
  }
  return list;
}

/**
 * Seconds within which no more than what remains should be used: until the rule holds nothing more or,
 * in a refusal, until the time that Retry-After names.
 */
function windowLeft(
  { resetAfterMs }: Pick<RuleDecision, "resetAfterMs">,
  { allowed, retryAfterMs }: Decision,
): number {
  return Math.ceil((allowed ? resetAfterMs : Math.min(resetAfterMs, retryAfterMs)) / 1000);
}
