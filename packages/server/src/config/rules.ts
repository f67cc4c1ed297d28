// Rules as the library checks them, told in the words of a schema.
import {
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

const builders = { fixedWindow, leakyBucket, slidingCells, slidingCounter, slidingLog, tokenBucket };

/** A rule as a file gives it: its algorithm may be left out. */
export type WrittenRule = { readonly [Name in keyof RuleInput]?: RuleInput[Name] | undefined };

/** The rule with the library's defaults, or a `SluiceError`. */
export function buildRule({ algorithm = "slidingLog", ...options }: WrittenRule): Rule {
  return builders[algorithm](options as Parameters<(typeof builders)[typeof algorithm]>[0]);
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
