const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration that the schema has let through, in milliseconds. */
export function milliseconds(duration: number | string): number {
  if (typeof duration === "number") return duration;
  const [, digits, unit] = /^(\d+)(ms|s|m|h|d)$/.exec(duration) ?? [];
  return Number(digits) * UNITS[unit as keyof typeof UNITS];
}

/** Milliseconds as a person would say them: "250 ms", "1.5 s", "2 min", "3 h", "1 d". */
export function inWords(ms: number): string {
  if (!Number.isFinite(ms)) return "never";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${round(ms / 1000)} s`;
  if (ms < 3_600_000) return `${round(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${round(ms / 3_600_000)} h`;
  return `${round(ms / 86_400_000)} d`;
}

function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}
