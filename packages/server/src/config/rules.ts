// Rules as the library checks them, told in the words of a schema.
import {
  concurrent,
  fixedWindow,
  leakyBucket,
  type Rule,
  type RuleInput,
  SluiceError,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
} from "sluice";

const builders = {
  concurrent,
  fixedWindow,
  leakyBucket,
  slidingCells,
  slidingCounter,
  slidingLog,
  tokenBucket,
};

/** A rule as a file gives it: its algorithm may be left out. */
export type WrittenRule = { readonly [Name in keyof RuleInput]?: RuleInput[Name] | undefined };

/** The rule with the library's defaults, or a `SluiceError`. */
export function buildRule({ algorithm = "slidingLog", ...options }: WrittenRule): Rule {
  const build = builders[algorithm] as (options: WrittenRule) => Rule;
  return build(options);
}

/** What the library has against the rule, if anything. */
export function complaintAbout(rule: WrittenRule): string | undefined {
  try {
    buildRule(rule);
    return undefined;
  } catch (error) {
    if (error instanceof SluiceError) return `is refused: ${error.message}`;
    throw error;
  }
}
