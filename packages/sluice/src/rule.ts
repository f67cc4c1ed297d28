import type { Algorithm } from "./algorithms/algorithm.js";
import { concurrent as concurrentArithmetic } from "./algorithms/concurrent.js";
import { fixedWindow as fixedWindowArithmetic } from "./algorithms/fixedWindow.js";
import { type AlgorithmName, algorithmOf, know, unbuilt } from "./algorithms/index.js";
import { leakyBucket as leakyBucketArithmetic } from "./algorithms/leakyBucket.js";
import { leased } from "./algorithms/leased.js";
import { slidingCells as slidingCellsArithmetic } from "./algorithms/slidingCells.js";
import { slidingCounter as slidingCounterArithmetic } from "./algorithms/slidingCounter.js";
import { slidingLog as slidingLogArithmetic } from "./algorithms/slidingLog.js";
import { tokenBucket as tokenBucketArithmetic } from "./algorithms/tokenBucket.js";
import { type Duration, milliseconds, shortest } from "./duration.js";
import { checkNames, SluiceError, show, wholeNumber } from "./errors.js";

/** What every rule has, whatever its algorithm. */
export interface RuleOptions {
  /** How many units may pass per window. */
  readonly limit: number;
  readonly window: Duration;
  /** Shown in decisions, headers and metrics; by default the window, such as "1m". */
  readonly name?: string;
  /** Count by these parts of a record key alone; by default by the whole key. */
  readonly by?: readonly string[];
}

/** What `slidingLog` takes. */
export interface SlidingLogOptions extends RuleOptions {
  /** How Redis keeps the log: `"zset"` has one member per request, for listing who and when. */
  readonly layout?: "compact" | "zset";
}

/** What `slidingCells` takes. */
export interface SlidingCellsOptions extends RuleOptions {
  /** Into how many cells the window is cut: 60 unless told. More cells, finer edges. */
  readonly cells?: number;
  /** `"strict"` never admits over the limit; `"weighted"` interpolates the oldest cell. */
  readonly mode?: "strict" | "weighted";
}

/** What `tokenBucket` and `leakyBucket` take. */
export interface BucketOptions extends RuleOptions {
  /** How many units may pass at once, and the largest cost that ever fits. */
  readonly burst?: number;
}

/** What `concurrent` takes: how many slots, and for how long a holder that says nothing keeps one. */
export interface ConcurrentOptions extends Omit<RuleOptions, "window"> {
  /** How long a slot is held at most, unless it is renewed: longer than the longest silence of a holder. */
  readonly lease: Duration;
}

/** A rule as YAML, JSON or a builder gives it: plain data, not yet checked. */
export type RuleInput =
  | (WindowRuleInput & {
      /** For how long what is reserved is held, unless it is settled or renewed; longer than the window says nothing. */
      readonly lease?: Duration;
    })
  | ({ readonly algorithm: "concurrent" } & ConcurrentOptions & Without<WindowRuleInput, ConcurrentOptions>);

/** The options that one has and the other has not, left out. */
type Without<One, Other> = { readonly [P in Exclude<keyof One, keyof Other | "algorithm">]?: undefined };

type WindowRuleInput = { readonly algorithm: AlgorithmName } & RuleOptions &
  Pick<SlidingLogOptions, "layout"> &
  Pick<SlidingCellsOptions, "cells" | "mode"> &
  Pick<BucketOptions, "burst">;

/** A checked rule: plain data with its defaults filled in and its window, or lease, in milliseconds. */
export interface Rule {
  readonly algorithm: AlgorithmName;
  readonly name: string;
  readonly limit: number;
  readonly window: number;
  readonly lease?: number;
  readonly by?: readonly string[];
  readonly layout?: "compact" | "zset";
  readonly cells?: number;
  readonly mode?: "strict" | "weighted";
  readonly burst?: number;
}

/** Exact: at most `limit` in any window, not one fewer when asked. The default choice. */
export const slidingLog = (options: SlidingLogOptions): Rule =>
  build({ ...options, algorithm: "slidingLog" }, slidingLogArithmetic, withLayout, ["layout"]);

/**
 * Never over the limit, in memory that does not grow with it; refuses up to one cell early. With
 * `mode: "weighted"` approximate: at most the limit plus what the oldest cell holds.
 */
export const slidingCells = (options: SlidingCellsOptions): Rule =>
  build({ ...options, algorithm: "slidingCells" }, slidingCellsArithmetic, withCells, ["cells", "mode"]);

/** Approximate, up to twice the limit for an adversary: two windows, the previous one weighted. */
export const slidingCounter = (options: RuleOptions): Rule =>
  build({ ...options, algorithm: "slidingCounter" }, slidingCounterArithmetic);

/** At most twice the limit across a boundary: the baseline the others are compared with. */
export const fixedWindow = (options: RuleOptions): Rule =>
  build({ ...options, algorithm: "fixedWindow" }, fixedWindowArithmetic);

/** At most `burst + limit` per window: refills continuously, `burst` (default `limit`) at once. */
export const tokenBucket = (options: BucketOptions): Rule =>
  build({ ...options, algorithm: "tokenBucket" }, tokenBucketArithmetic, withBurst, ["burst"]);

/** Evenly spaced, `window / limit` apart, with up to `burst` (default 1) at once. */
export const leakyBucket = (options: BucketOptions): Rule =>
  build({ ...options, algorithm: "leakyBucket" }, leakyBucketArithmetic, withBurst, ["burst"]);

/** Exact: at most `limit` slots held at a time, each until it is given back or its lease ends. */
export const concurrent = (options: ConcurrentOptions): Rule =>
  build({ ...options, algorithm: "concurrent" }, concurrentArithmetic);

/** A rule out of plain data, such as YAML's or JSON's, whatever its algorithm. Safe on unchecked data. */
export function rule(input: RuleInput): Rule {
  const builders: Readonly<Record<AlgorithmName, (input: never) => Rule>> = {
    slidingLog,
    slidingCells,
    slidingCounter,
    fixedWindow,
    tokenBucket,
    leakyBucket,
    concurrent,
  };
  checkObject(input);
  const { algorithm } = input;
  if (!Object.hasOwn(builders, algorithm)) {
    refuse(`A rule's algorithm must be one of ${Object.keys(builders).join(", ")}; got ${show(algorithm)}.`);
  }
  const built = builders[algorithm](input as never);
  const { lease, layout } = built;
  if (lease !== undefined) {
    if (layout === "zset") refuse('A slidingLog with a lease must have the layout "compact"; got "zset".');
    know(`leased ${algorithm}`, leased(algorithmOf({ algorithm })));
  }
  return built;
}

/** Adds to a rule the options that only its algorithm has, checked. */
type WithOptions = (rule: Rule, input: RuleInput) => Rule;

/** Those of the algorithms that rules were built of here, with their names, so that a bundle has no others. */
const ownOptions = new Map<AlgorithmName, readonly [WithOptions, readonly string[]]>();

function build(
  input: RuleInput,
  arithmetic: Algorithm<unknown, unknown>,
  withOptions: WithOptions = (rule) => rule,
  names: readonly string[] = [],
): Rule {
  ownOptions.set(input.algorithm, [withOptions, names]);
  know(input.algorithm, arithmetic);
  return checkRule(input);
}

const withLayout: WithOptions = (rule, { layout = "compact" }) => ({
  ...rule,
  layout: oneOf("layout", layout, ["compact", "zset"]),
});

const withCells: WithOptions = (rule, { cells = 60, mode = "strict" }) => ({
  ...rule,
  cells: Math.min(rule.window, wholeNumber("INVALID_RULE", "slidingCells' cells", cells, 1, LARGEST_CELLS)),
  mode: oneOf("mode", mode, ["strict", "weighted"]),
});

const withBurst: WithOptions = (rule, input) => {
  const { algorithm, limit, window } = rule;
  const usual = algorithm === "tokenBucket" ? limit : 1;
  const burst = wholeNumber("INVALID_RULE", `${algorithm}'s burst`, input.burst ?? usual, 1);
  if (burst * window > Number.MAX_SAFE_INTEGER) {
    refuse(
      `${algorithm} of burst ${burst} over ${shortest(window)} is too large to count exactly; use slidingCells.`,
    );
  }
  return { ...rule, burst };
};

const COMMON = ["limit", "window", "lease", "name", "by", "algorithm"];

/** The longest text of a name; names stand in headers, metrics and Redis keys. */
const NAME = /^[\w .:@+-]{1,64}$/;
const LARGEST_CELLS = 1000;

/** The rule with its defaults, or a `SluiceError` that says what is wrong with it. Safe on unchecked data. */
export function checkRule(input: RuleInput): Rule {
  checkObject(input);
  const { algorithm, by } = input;
  const [withOptions, names] = ownOptions.get(algorithm) ?? unbuilt(algorithm);
  checkNames("INVALID_RULE", algorithm, input, [...COMMON, ...names]);
  const limit = wholeNumber("INVALID_RULE", `${algorithm}'s limit`, input.limit, 1);
  const period = algorithm === "concurrent" && (input.lease || !input.window) ? "lease" : "window";
  const window = milliseconds(`${algorithm}'s ${period}`, input[period]);
  const lease = milliseconds(`${algorithm}'s lease`, input.lease ?? window);
  if (by !== undefined) checkParts(by);
  const name = checkName(
    "A rule's name",
    input.name ?? [shortest(window), ...(by ?? [])].join(" ").slice(0, 64),
  );
  const rule = { algorithm, name, limit, window, ...(lease < window && { lease }), ...(by && { by }) };
  return withOptions(rule, input);
}

function checkObject(input: unknown): void {
  if (typeof input !== "object" || input === null) refuse(`A rule must be an object; got ${show(input)}.`);
}

/** The most a single call can ever cost under this rule. */
export function capacity(rule: Rule): number {
  return rule.burst ?? rule.limit;
}

/** Whether what is reserved under the rule is held on a lease; what others count, they count for good. */
export function isLease(rule: Rule): boolean {
  return rule.lease !== undefined || isSlots(rule);
}

/** Whether the rule's units are given back whole, whatever is settled. */
export function isSlots(rule: Rule): boolean {
  return rule.algorithm === "concurrent";
}

/** Names appear in HTTP headers, metrics and Redis keys, so they are short and plain. */
export function checkName(what: string, name: unknown): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  throw new SluiceError(
    "INVALID_RULE",
    `${what} must be 1 to 64 letters, digits, spaces or any of _ . : @ + -; got ${show(name)}.`,
  );
}

function checkParts(by: unknown): void {
  const isList = Array.isArray(by) && by.length > 0 && new Set(by).size === by.length;
  if (!isList || !by.every((part) => typeof part === "string" && NAME.test(part))) {
    refuse(`A rule's by must list the names of key parts, such as ["user"], each once; got ${show(by)}.`);
  }
}

function oneOf<T extends string>(what: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  return refuse(`A rule's ${what} must be ${allowed.map(show).join(" or ")}; got ${show(value)}.`);
}

function refuse(message: string): never {
  throw new SluiceError("INVALID_RULE", message);
}
