// What a caller is answered: a decision, and beside it what the limits in trial would have said.
import type { Decision, RuleDecision } from "sluice";

export interface Answer extends Decision {
  /** The limits in trial, which refuse nothing. */
  readonly shadow?: readonly RuleDecision[];
}

/**
 * The answer as JSON. Written by hand because it is most of the work of a decision: every value is a
 * number, a fixed word or a checked name, none of which needs escaping. `null` stands for "never".
 */
export function answerJson(answer: Answer): string {
  const { rules, shadow } = answer;
  let json = briefJson(answer).slice(0, -1);
  json += ',"rules":[';
  for (let r = 0; r < rules.length; r++) json += (r > 0 ? "," : "") + ruleJson(rules[r] as RuleDecision);
  json += "]";
  if (shadow !== undefined) json += `,"shadow":[${shadow.map(ruleJson).join(",")}]`;
  return `${json}}`;
}

/** The answer without its rules, as a batch tells it. */
export function briefJson(answer: Answer): string {
  const { degraded } = answer;
  return `${ruleJson(answer).slice(0, -1)}${degraded === undefined ? "" : `,"degraded":"${degraded}"`}}`;
}

type Told = Pick<RuleDecision, "allowed" | "rule" | "limit" | "remaining" | "retryAfterMs" | "resetAfterMs">;

function ruleJson({ allowed, rule, limit, remaining, retryAfterMs, resetAfterMs }: Told): string {
  const retry = retryAfterMs === Infinity ? "null" : retryAfterMs;
  return `{"allowed":${allowed},"rule":"${rule}","limit":${limit},"remaining":${remaining},"retryAfterMs":${retry},"resetAfterMs":${resetAfterMs}}`;
}
