/** One rule's part of a decision. */
export interface RuleDecision {
  /** The rule's name. */
  readonly rule: string;
  readonly allowed: boolean;
  readonly limit: number;
  /** The largest cost that would be admitted right after this decision. */
  readonly remaining: number;
  /** With no other traffic, the same cost is admitted after exactly this time; 0 when allowed, Infinity when it can never fit. */
  readonly retryAfterMs: number;
  /** When the rule would hold nothing more, with no other traffic. */
  readonly resetAfterMs: number;
  /** The time the cost was, or would have been, counted at, by the store's clock. */
  readonly at: number;
  /** Set when the store was out and a policy answered instead. */
  readonly degraded?: "open" | "closed" | "local";
}

/**
 * The answer: allowed or not, and what the caller needs to know next. `limit`, `remaining`,
 * `retryAfterMs` and `resetAfterMs` are the binding rule's.
 */
export interface Decision {
  readonly allowed: boolean;
  /** The binding rule: the one that denies longest or, when allowed, the one with the least left. */
  readonly rule: string;
  readonly limit: number;
  readonly remaining: number;
  readonly retryAfterMs: number;
  readonly resetAfterMs: number;
  readonly rules: readonly RuleDecision[];
  readonly degraded?: "open" | "closed" | "local";
}

/** What one rule holds for a key. */
export interface RuleStatus {
  readonly rule: string;
  readonly count: number;
  readonly limit: number;
  readonly remaining: number;
  /** The oldest and newest times still counted, as finely as the algorithm keeps them. */
  readonly oldestAt: number | undefined;
  readonly newestAt: number | undefined;
  readonly resetAfterMs: number;
}

/** One decision out of its rules': allowed when all of them allow. */
export function combine(rules: readonly RuleDecision[]): Decision {
  const binding = rules.length === 1 ? rules[0] : rules.reduce(moreBinding);
  const { allowed, rule, limit, remaining, retryAfterMs, resetAfterMs } = binding;
  const decision = { allowed, rule, limit, remaining, retryAfterMs, resetAfterMs, rules };
  return binding.degraded === undefined ? decision : Object.assign(decision, { degraded: binding.degraded });
}

/**
 * V8 keeps the shape of an object by the kinds of numbers its fields have held. A first large number or Infinity
 * would change that of all decisions, and code compiled before would make each one in the old shape only for
 * it to be converted, at three times the cost. A field that begins with no number takes all kinds. The example
 * is kept, since a shape that no object has is forgotten.
 */
const any = undefined as unknown as number;
combine.shape = combine([
  { rule: "", allowed: true, limit: any, remaining: any, retryAfterMs: any, resetAfterMs: any, at: any },
]);

/** The one that denies longer or, where both take as long, the one with less left. */
function moreBinding(a: RuleDecision, b: RuleDecision): RuleDecision {
  const binds =
    a.retryAfterMs === b.retryAfterMs ? b.remaining < a.remaining : b.retryAfterMs > a.retryAfterMs;
  return binds ? b : a;
}
