import { SluiceError, show } from "./errors.js";
import type { Rule } from "./rule.js";

/** Who is limited: a string, or named parts of which each rule may count by some. */
export type Key = string | Readonly<Record<string, string | number>>;

/** Longer keys are refused: a key is an identity, not a payload. */
export const LONGEST_KEY = 16_384;

/**
 * The text a rule counts this key under. Two keys share it only when they agree in all the
 * parts that the rule counts by.
 */
export function keyFor(rule: Rule, key: Key): string {
  return typeof key === "string" && rule.by === undefined ? bounded(key) : keyOfParts(rule, key);
}

function keyOfParts(rule: Rule, key: Key): string {
  if (typeof key === "string") {
    refuse(
      `Rule "${rule.name}" counts by ${rule.by?.join(", ")}, so its key must be an object with these; got ${show(key)}.`,
    );
  }
  if (typeof key !== "object" || key === null || Array.isArray(key)) {
    refuse(`A key must be a string or an object of parts, such as { user: "42" }; got ${show(key)}.`);
  }
  const names = rule.by ?? Object.keys(key).sort();
  return bounded(
    names
      .map((name) => `${escapePart(name)}=${escapePart(part(`Rule "${rule.name}" counts`, key, name))}`)
      .join("&"),
  );
}

function part(who: string, key: Readonly<Record<string, string | number>>, name: string): string {
  const value = Object.hasOwn(key ?? {}, name) ? key[name] : undefined;
  if ((typeof value === "string" && value !== "") || (typeof value === "number" && Number.isFinite(value))) {
    return String(value);
  }
  return refuse(
    `${who} by ${show(name)}, so that part of the key must be a non-empty string or a number; got ${show(value)}.`,
  );
}

/** What keeps the counts of a record key together: the value of one part, or else the limiter. */
export function partitionOf(
  limiter: string,
  key: Readonly<Record<string, string | number>>,
  name: string | undefined,
): string {
  return name === undefined
    ? limiter
    : `${limiter}/${part(`Limiter "${limiter}" is partitioned`, key, name)}`;
}

/** Escapes what joins parts, so that different parts never give the same text. */
function escapePart(text: string): string {
  return /[%&=]/.test(text) ? text.replace(/[%&=]/g, encodeURIComponent) : text;
}

function bounded(key: string): string {
  return key.length > 0 && key.length <= LONGEST_KEY ? key : refuseLength(key);
}

function refuseLength({ length }: string): never {
  return refuse(`A key must have 1 to ${LONGEST_KEY} characters; got ${length}.`);
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_KEY", message);
}
