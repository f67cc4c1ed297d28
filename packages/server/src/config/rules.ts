// Rules as the library checks them, told in the words of a schema.
import { type Rule, type RuleInput, rule, SluiceError } from "sluice";

/** A rule as a file gives it: its algorithm may be left out. */
export type WrittenRule = { readonly [Name in keyof RuleInput]?: RuleInput[Name] | undefined };

/** The rule with the library's defaults, or a `SluiceError`. */
export function buildRule({ algorithm = "slidingLog", ...options }: WrittenRule): Rule {
  return rule({ ...options, algorithm } as RuleInput);
}

/** What the library has against the rule, if anything. */
export function complaintAbout(written: WrittenRule): string | undefined {
  try {
    buildRule(written);
    return undefined;
  } catch (error) {
    if (error instanceof SluiceError) return `is refused: ${error.message}`;
    throw error;
  }
}
