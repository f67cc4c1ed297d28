// A decision in words: which rule, what remains, why, and when to come again.
import type { Rule, RuleDecision, RuleStatus } from "sluice";
import { inWords } from "../config/durations.js";
import type { Answer } from "../limits/answer.js";

type Limit = Pick<Rule, "name" | "limit" | "window" | "algorithm">;

/** What was asked and what the answer means, for people. */
export function explain(answer: Answer, cost: number, rules: readonly Limit[]): string {
  const lines = [headline(answer, cost, rules), ""];
  for (const rule of answer.rules) lines.push(`  ${ruleLine(rule, cost, limitOf(rules, rule.rule))}`);
  for (const rule of answer.shadow ?? []) {
    lines.push(`  ${ruleLine(rule, cost, limitOf(rules, rule.rule))} (in trial: it refuses nothing)`);
  }
  return lines.join("\n");
}

function headline(
  { allowed, rule, remaining, limit, retryAfterMs, degraded }: Answer,
  cost: number,
  rules: readonly Limit[],
): string {
  if (degraded)
    return `${allowed ? "allowed" : "denied"} by the outage policy "${degraded}": the store did not answer.`;
  const per = limitOf(rules, rule);
  const named = `rule "${rule}"${per ? ` (${per.limit} per ${inWords(per.window)}, ${per.algorithm})` : ""}`;
  if (allowed) return `allowed: ${named} binds, with ${remaining} of ${limit} left.`;
  if (!Number.isFinite(retryAfterMs) || retryAfterMs === null) {
    return `denied for good: a cost of ${cost} is more than ${named} can ever admit at once.`;
  }
  return `denied by ${named}: ${remaining} left, ${cost} asked; the same cost fits in ${inWords(retryAfterMs)}.`;
}

function ruleLine(
  { rule, allowed, limit, remaining, retryAfterMs, resetAfterMs }: RuleDecision,
  cost: number,
  per: Limit | undefined,
): string {
  const window = per ? ` per ${inWords(per.window)}` : "";
  const state = allowed
    ? `${remaining} left${resetAfterMs > 0 ? `; nothing counted any more in ${inWords(resetAfterMs)}` : ""}`
    : Number.isFinite(retryAfterMs) && retryAfterMs !== null
      ? `${cost} does not fit into ${remaining}; it does in ${inWords(retryAfterMs)}`
      : `${cost} never fits`;
  return `${allowed ? "fits  " : "FULL  "} ${rule}: ${limit}${window}, ${state}`;
}

/** What a rule holds for a key, in words. */
export function describeStatus(
  { rule, count, limit, remaining, oldestAt, newestAt, resetAfterMs }: RuleStatus,
  per: Limit | undefined,
): string {
  const window = per ? ` per ${inWords(per.window)} (${per.algorithm})` : "";
  if (count === 0) return `${rule}: nothing counted; ${limit}${window} free`;
  const span =
    oldestAt === undefined || newestAt === undefined
      ? ""
      : `, the oldest from ${new Date(oldestAt).toISOString()}, the newest from ${new Date(newestAt).toISOString()}`;
  return `${rule}: ${count} of ${limit}${window} counted, ${remaining} left${span}; empty again in ${inWords(resetAfterMs)}`;
}

function limitOf(rules: readonly Limit[], name: string): Limit | undefined {
  return rules.find((rule) => rule.name === name);
}
