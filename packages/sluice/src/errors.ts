import type { Decision } from "./decision.js";

/** Every code a `SluiceError` can carry; `docs/errors.md` has a heading for each. */
export type SluiceErrorCode =
  | "INVALID_RULE"
  | "INVALID_KEY"
  | "INVALID_COST"
  | "INVALID_OPTION"
  | "NAME_TAKEN"
  | "NO_ADDRESS"
  | "NOT_SYNC"
  | "NOT_COUNTED"
  | "NEVER_FITS"
  | "TIMEOUT"
  | "QUEUE_FULL"
  | "CLOSED"
  | "STORE_FAILED"
  | "UNKNOWN_MODEL"
  | "UNKNOWN_USAGE"
  | "RUN_OVER";

interface SluiceErrorOptions extends ErrorOptions {
  readonly decision?: Decision;
}

/**
 * The one error class: misuse and broken I/O, never a denial.
 * `code` is stable; the message says what was given, what is allowed and what to do.
 */
export class SluiceError extends Error {
  override readonly name = "SluiceError";
  readonly code: SluiceErrorCode;
  /** The denial behind a wait that ended without success: which rule, and when to try again. */
  readonly decision?: Decision;

  constructor(code: SluiceErrorCode, message: string, options: SluiceErrorOptions = {}) {
    super(message, options);
    this.code = code;
    if (options.decision !== undefined) this.decision = options.decision;
  }
}

/** How a bad value is shown in a message: short, and never more than the reader needs. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "an array" : "an object";
  return String(value);
}

/** Refuses whatever is not a whole number from `min` to `max`. */
export function wholeNumber(
  code: SluiceErrorCode,
  what: string,
  value: unknown,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  return isWhole(value) && value >= min && value <= max ? value : refuse(code, what, value, min, max);
}

export function isWhole(value: unknown): value is number {
  return Number.isInteger(value);
}

function refuse(code: SluiceErrorCode, what: string, value: unknown, min: number, max: number): never {
  const range =
    max === Number.MAX_SAFE_INTEGER ? `of at least ${min} (up to 2^53 - 1)` : `from ${min} to ${max}`;
  throw new SluiceError(code, `${what} must be a whole number ${range}; got ${show(value)}.`);
}

/** Refuses an option that is not among these: a `stor` must not mean that counts are kept elsewhere. */
export function checkNames(
  code: SluiceErrorCode,
  what: string,
  options: object,
  names: readonly string[],
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !names.includes(name)) {
      throw new SluiceError(code, `${what} has no option ${show(name)}; it has ${names.join(", ")}.`);
    }
  }
}
