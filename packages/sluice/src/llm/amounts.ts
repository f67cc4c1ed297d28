import { SluiceError, show, wholeNumber } from "../errors.js";
import { capacity } from "../rule.js";
import type { Estimator } from "./estimate.js";
import type { StoredLimit, Unit } from "./limits.js";
import { MICRO, type PriceTable } from "./prices.js";
import type { Usage } from "./usage.js";

/** Who calls, and what is known of the call. Limits count by the other parts: `user`, `org`, `run`, ... */
export interface Subject {
  readonly model?: string | undefined;
  /** What is sent, in any shape: its text is counted where `inputTokens` is not told. */
  readonly input?: unknown;
  readonly inputTokens?: number | undefined;
  /** The most that the answer may have: `max_tokens`. Without it, what was learned from earlier answers. */
  readonly outputTokens?: number | undefined;
  /** Input and output together, where only that is known. */
  readonly tokens?: number | undefined;
  /** What it will cost in dollars, at most; by default the tokens times their price. */
  readonly usd?: number | undefined;
  /** Who answers: what an upstream 429 pauses, such as "api.openai.com/gpt-5". */
  readonly upstream?: string | undefined;
  readonly [part: string]: unknown;
}

/** What one call reserves. */
export interface Amounts {
  readonly byUnit: Readonly<Record<Unit, number>>;
  readonly model: string | undefined;
  /** The input as it was counted, to learn from. */
  readonly counted: number;
  readonly usage: Usage;
}

/** A number of which a part was told, and the rest is an estimate. */
interface Guess {
  readonly told: number;
  readonly guessed: number;
}

/**
 * What to reserve for a call. What was told is taken as it is; what was estimated is cut to what the
 * smallest limit of its unit admits at all, or else a small budget would refuse its first call.
 */
export function amountsOf(
  subject: Subject,
  limits: readonly StoredLimit[],
  estimator: Estimator,
  prices: PriceTable,
): Amounts {
  const { model, tokens, usd } = checkSubject(subject);
  const counted = subject.inputTokens === undefined ? estimator.counted(subject.input, model) : 0;
  const only = tokens !== undefined && subject.inputTokens === undefined && subject.input === undefined;
  const input = guess(subject.inputTokens ?? (only ? tokens : undefined), () =>
    estimator.inputTokens(counted, model),
  );
  const output = guess(subject.outputTokens ?? (only ? tokens : undefined), () =>
    estimator.outputTokens(model),
  );
  const all = tokens === undefined ? sum(input, output) : { told: tokens, guessed: 0 };
  const cut = (unit: Unit, amount: Guess) => {
    const smallest = Math.min(
      ...limits.filter((limit) => limit.unit === unit).map(({ rule }) => capacity(rule)),
    );
    return amount.told + Math.min(amount.guessed, Math.max(0, smallest - amount.told));
  };
  const price = (usage: Usage) => prices.microDollars(model, usage);
  let dollars: Guess = { told: 0, guessed: 0 };
  if (usd !== undefined) dollars = { told: Math.ceil(usd * MICRO), guessed: 0 };
  else if (limits.some(({ unit }) => unit === "usd")) {
    const told = only ? price({ tokens }) : price({ inputTokens: input.told, outputTokens: output.told });
    const total = only
      ? told
      : price({ inputTokens: input.told + input.guessed, outputTokens: output.told + output.guessed });
    dollars = { told, guessed: total - told };
  }
  const byUnit = {
    requests: 1,
    concurrent: 1,
    "input-tokens": cut("input-tokens", input),
    "output-tokens": cut("output-tokens", output),
    tokens: cut("tokens", all),
    usd: cut("usd", dollars),
  };
  const usage = only
    ? { tokens: byUnit.tokens }
    : { inputTokens: byUnit["input-tokens"], outputTokens: byUnit["output-tokens"] };
  return { byUnit, model, counted, usage };
}

/** What a limit is to be charged in the end; undefined to leave it as it was reserved. */
export function actualOf(
  limit: StoredLimit,
  usage: Usage,
  model: string | undefined,
  prices: PriceTable,
): number | undefined {
  const { inputTokens, outputTokens } = usage;
  const isSplit = inputTokens !== undefined && outputTokens !== undefined;
  const exempt = limit.countCached ? 0 : (usage.cachedInputTokens ?? 0);
  switch (limit.unit) {
    case "requests":
      return undefined;
    case "concurrent":
      return 0;
    case "input-tokens":
      return inputTokens === undefined ? undefined : Math.max(0, inputTokens - exempt);
    case "output-tokens":
      return outputTokens;
    case "tokens": {
      const all = isSplit ? inputTokens + outputTokens : usage.tokens;
      return all === undefined ? undefined : Math.max(0, all - exempt);
    }
    case "usd":
      if (usage.usd !== undefined) return Math.ceil(usage.usd * MICRO);
      return prices.has(model) && (isSplit || usage.tokens !== undefined)
        ? prices.microDollars(model, usage)
        : undefined;
  }
}

function guess(told: number | undefined, estimate: () => number): Guess {
  return told === undefined ? { told: 0, guessed: estimate() } : { told, guessed: 0 };
}

function sum(a: Guess, b: Guess): Guess {
  return { told: a.told + b.told, guessed: a.guessed + b.guessed };
}

function checkSubject(subject: Subject): Subject {
  if (typeof subject !== "object" || subject === null) {
    throw new SluiceError(
      "INVALID_KEY",
      `A subject must be an object, such as { user: "42" }; got ${show(subject)}.`,
    );
  }
  for (const amount of ["tokens", "inputTokens", "outputTokens"] as const) {
    if (subject[amount] !== undefined)
      wholeNumber("INVALID_COST", `A subject's ${amount}`, subject[amount], 0);
  }
  const { usd } = subject;
  if (usd !== undefined && !(typeof usd === "number" && usd >= 0 && Number.isFinite(usd))) {
    throw new SluiceError("INVALID_COST", `A subject's usd must be dollars, from 0 on; got ${show(usd)}.`);
  }
  return subject;
}
