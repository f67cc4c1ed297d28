/** A header's value by its name in lower case. */
export type HeaderOf = (name: string) => string | null | undefined;

/** Where providers say how much is left: [remaining, limit, reset]. */
const FAMILIES = [
  ...["requests", "tokens"].map((unit) =>
    ["remaining", "limit", "reset"].map((field) => `x-ratelimit-${field}-${unit}`),
  ),
  ...["requests", "tokens", "input-tokens", "output-tokens"].map((unit) =>
    ["remaining", "limit", "reset"].map((field) => `anthropic-ratelimit-${unit}-${field}`),
  ),
];
/** Too many requests; unavailable; Anthropic's overloaded. */
const REFUSALS = [429, 503, 529];
/** For a 429 that does not say how long. */
const UNTOLD_MS = 1000;
const MS_PER_UNIT: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};

/**
 * For how long nobody should call again, by what the provider answered; undefined when all may go on.
 * A refusal says it in `retry-after-ms` or `retry-after`, or else by when what is used up is whole again.
 * An answer that took the last of something says how fast that flows in again: until there is one.
 */
export function pauseFor(status: number, headerOf: HeaderOf): number | undefined {
  const now = Date.parse(headerOf("date") ?? "") || Date.now();
  if (!REFUSALS.includes(status)) return longest(FAMILIES.map((family) => untilOne(family, headerOf, now)));
  return (
    milliseconds(headerOf("retry-after-ms")) ??
    duration(headerOf("retry-after"), now) ??
    longest(FAMILIES.map((family) => untilWhole(family, headerOf, now))) ??
    (status === 429 ? UNTOLD_MS : undefined)
  );
}

function untilOne(family: readonly string[], headerOf: HeaderOf, now: number): number | undefined {
  const [remaining, limit, reset] = read(family, headerOf, now);
  if (remaining === undefined || reset === undefined || remaining >= 1) return undefined;
  return limit !== undefined && limit > remaining ? (reset * (1 - remaining)) / (limit - remaining) : reset;
}

function untilWhole(family: readonly string[], headerOf: HeaderOf, now: number): number | undefined {
  const [remaining, , reset] = read(family, headerOf, now);
  return remaining !== undefined && remaining < 1 ? reset : undefined;
}

function read([remaining, limit, reset]: readonly string[], headerOf: HeaderOf, now: number) {
  return [
    milliseconds(headerOf(remaining)),
    milliseconds(headerOf(limit)),
    duration(headerOf(reset), now),
  ] as const;
}

function longest(times: readonly (number | undefined)[]): number | undefined {
  const told = times.filter((time) => time !== undefined && time > 0) as number[];
  return told.length === 0 ? undefined : Math.ceil(Math.max(...told));
}

function milliseconds(text: string | null | undefined): number | undefined {
  return text && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

/** Seconds, a Go duration ("6m0s", "1.5s", "20ms"), or a date (RFC 3339 or HTTP's own) less now. */
export function duration(text: string | null | undefined, now: number): number | undefined {
  if (!text) return undefined;
  const seconds = milliseconds(text);
  if (seconds !== undefined) return seconds * 1000;
  if (/^\s*(\d+(\.\d+)?(h|ms|m|s|us|µs|ns))+\s*$/.test(text)) {
    let ms = 0;
    for (const [, digits, unit] of text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)/g)) {
      ms += Number(digits) * MS_PER_UNIT[unit];
    }
    return ms;
  }
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}
