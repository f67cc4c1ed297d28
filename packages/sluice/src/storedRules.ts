import { algorithmOf } from "./algorithms/index.js";
import { SluiceError } from "./errors.js";
import { checkRule, type Rule, type RuleInput } from "./rule.js";
import type { StoredRule } from "./store.js";

/**
 * Checked rules with the places their counts live at under the limiter's name, for those who put charges
 * to a store themselves, each rule with its own key and cost: a server of Envoy's protocol does.
 */
export function storedRules(limiter: string, input: RuleInput | readonly RuleInput[]): readonly StoredRule[] {
  const rules = (Array.isArray(input) ? input : [input]).map(checkRule);
  if (rules.length === 0)
    throw new SluiceError("INVALID_RULE", "A limiter needs at least one rule; got none.");
  const names = new Set<string>();
  for (const { name } of rules) {
    if (names.has(name)) {
      throw new SluiceError("INVALID_RULE", `Two rules are named "${name}"; give each its own \`name\`.`);
    }
    names.add(name);
  }
  for (const rule of rules) algorithmOf(rule);
  return rules.map((rule) => Object.freeze({ ...rule, path: pathOf(limiter, rule) }));
}

/** Names hold no slash, so no two paths coincide. The limit is left out: changing it keeps the counts. */
function pathOf(limiter: string, { name, algorithm, window, cells, mode, layout, lease }: Rule): string {
  return [limiter, name, algorithm, window, cells, mode, layout, lease && "leased"]
    .filter((part) => part !== undefined)
    .join("/");
}
