// How the schemas say what is allowed: every leaf of the configuration has its own sentence.
import { z } from "zod";

/** What a value must be, told when it is missing or wrong. */
export function mustBe(what: string) {
  return {
    error: ({ input }: { input?: unknown }) =>
      input === undefined ? `is missing: it must be ${what}` : `must be ${what}; got ${shown(input)}`,
  };
}

/** An object that knows its keys: another one is refused, with those it has and the nearest of them. */
export function record<Shape extends z.ZodRawShape>(what: string, shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return mustBe(what).error(issue);
      const [unknown = ""] = issue.keys as string[];
      const near = nearest(unknown, known);
      return `is not known here${near ? ` (did you mean "${near}"?)` : ""}; allowed: ${known.join(", ")}`;
    },
  });
}

export const flag = z.boolean(mustBe("true or false"));

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  const rule = mustBe(`a whole number ${range}`);
  return z.int(rule).min(min, rule).max(max, rule);
}

export function text(what: string, longest = 1024) {
  return z.string(mustBe(what)).min(1, mustBe(what)).max(longest, mustBe(what));
}

export function oneOf<const Values extends readonly string[]>(...values: Values) {
  return z.enum(values, mustBe(`one of ${values.join(", ")}`));
}

const DURATION = mustBe('a duration such as "250ms", "1s", "1m", "1h" or "1d", or whole milliseconds');

export const duration = z.union(
  [z.int().min(1), z.templateLiteral([z.int().min(1), z.enum(["ms", "s", "m", "h", "d"])])],
  DURATION,
);

/** A bad value, short enough for a message. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a mapping";
  if (value === null) return "nothing";
  const written = typeof value === "string" ? JSON.stringify(value) : String(value);
  return written.length > 60 ? `${written.slice(0, 60)}…` : written;
}

/** The known word that a typing error most likely meant, if one is close. */
function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known
    .map((candidate) => ({ candidate, edits: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best && best.edits <= Math.ceil(best.candidate.length / 3) ? best.candidate : undefined;
}

function editDistance(a: string, b: string): number {
  if (a.length > 64) return a.length;
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(replaced, (previous[j] as number) + 1, (row[j - 1] as number) + 1));
    }
    previous = row;
  }
  return previous[b.length] as number;
}
