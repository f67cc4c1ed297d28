import { SluiceError, show } from "../errors.js";
import type { Usage } from "./usage.js";

/** Dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that is read from the provider's cache; as `input` unless told. */
  readonly cachedInput?: number;
  /** Input that is written to the provider's cache; as `input` unless told. */
  readonly cacheWrite?: number;
}

export type Prices = Readonly<Record<string, Price>>;

/** A dollar per million tokens is a micro-dollar per token, and that is a million of these: whole numbers. */
const UNITS_PER_MICRO_DOLLAR = 1_000_000;
export const MICRO = 1_000_000;

/** What usage costs, in whole micro-dollars, rounded up once. */
export class PriceTable {
  readonly #prices: Prices;

  constructor(prices: Prices) {
    for (const [model, price] of Object.entries(prices)) checkPrice(model, price);
    this.#prices = prices;
  }

  has(model: unknown): boolean {
    return typeof model === "string" && Object.hasOwn(this.#prices, model);
  }

  /** Tokens of which it is not known what they are cost as much as the dearest. */
  microDollars(model: unknown, usage: Usage): number {
    const price = this.#priceOf(model);
    const { inputTokens = 0, outputTokens = 0, cachedInputTokens = 0, cacheWriteTokens = 0 } = usage;
    const plain = Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens);
    const unknown = Math.max(0, (usage.tokens ?? 0) - inputTokens - outputTokens);
    const units =
      plain * unitsPerToken(price.input) +
      cachedInputTokens * unitsPerToken(price.cachedInput ?? price.input) +
      cacheWriteTokens * unitsPerToken(price.cacheWrite ?? price.input) +
      outputTokens * unitsPerToken(price.output) +
      unknown * unitsPerToken(Math.max(price.input, price.output));
    return Math.ceil(units / UNITS_PER_MICRO_DOLLAR);
  }

  #priceOf(model: unknown): Price {
    if (typeof model === "string" && Object.hasOwn(this.#prices, model)) return this.#prices[model];
    const known = Object.keys(this.#prices).join(", ") || "none";
    throw new SluiceError(
      "UNKNOWN_MODEL",
      `A limit counts dollars, and prices has no model ${show(model)}; add it (it has ${known}).`,
    );
  }
}

function unitsPerToken(dollarsPerMillion: number): number {
  return Math.round(dollarsPerMillion * UNITS_PER_MICRO_DOLLAR);
}

function checkPrice(model: string, price: Price): void {
  for (const [part, value] of Object.entries(price)) {
    if (typeof value === "number" && value >= 0 && Number.isFinite(value)) continue;
    throw new SluiceError(
      "INVALID_OPTION",
      `prices[${show(model)}].${part} must be dollars per million tokens, from 0 on; got ${show(value)}.`,
    );
  }
}
