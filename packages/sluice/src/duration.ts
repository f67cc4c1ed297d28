import { isWhole, SluiceError, show } from "./errors.js";

/** Milliseconds, or a whole number with a unit: `"250ms"`, `"1s"`, `"1m"`, `"1h"`, `"1d"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
const LONGEST_DAYS = 3660;
const LONGEST = LONGEST_DAYS * UNITS.d;

/** The duration in whole milliseconds, from 1 ms to ten years; anything else is refused. */
export function milliseconds(what: string, duration: unknown): number {
  let ms = duration;
  if (typeof duration === "string") {
    const [, digits, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? [];
    ms = digits && unit ? Number(digits) * UNITS[unit as keyof typeof UNITS] : Number.NaN;
  }
  if (isWhole(ms) && ms >= 1 && ms <= LONGEST) return ms;
  throw new SluiceError(
    "INVALID_RULE",
    `${what} must be "250ms", "1s", "1m", "1h", "1d" or whole milliseconds, from 1 ms to ${LONGEST_DAYS} days; got ${show(duration)}.`,
  );
}

/** The shortest way to write a duration: 60000 is "1m". */
export function shortest(ms: number): string {
  for (const [unit, size] of Object.entries(UNITS)) {
    if (ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}
