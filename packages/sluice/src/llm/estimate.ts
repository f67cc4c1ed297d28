import type { Usage } from "./usage.js";

export interface EstimateOptions {
  /** Counts the tokens of a text: a tokenizer. By default its characters / 4. */
  readonly tokens?: (text: string, model: string | undefined) => number;
  /** How long an answer is taken to be before any was settled, where no maximum is told: 1000 unless told. */
  readonly outputTokens?: number;
}

/** What was learned of one model. */
interface Learned {
  /** How many tokens there are for each that was counted. */
  ratio: number;
  outputTokens: number;
}

const CHARACTERS_PER_TOKEN = 4;
/** A new ratio counts for an eighth; the longest answer is forgotten by a sixteenth per call. */
const RATIO_SHARE = 1 / 8;
const FORGOTTEN_SHARE = 1 / 16;
const MOST_MODELS = 1000;

/**
 * How many tokens a call will take, before it is made. The input: its tokens as they are counted, times
 * the ratio of true to counted tokens that was settled before. The output, where no maximum is told: the
 * longest answer so far, which fades as shorter ones come.
 */
export class Estimator {
  readonly #count: (text: string, model: string | undefined) => number;
  readonly #firstGuess: number;
  readonly #learned = new Map<string, Learned>();

  constructor(options: EstimateOptions = {}) {
    this.#count = options.tokens ?? ((text) => text.length / CHARACTERS_PER_TOKEN);
    this.#firstGuess = options.outputTokens ?? 1000;
  }

  /** The tokens as they are counted, before what was learned. */
  counted(input: unknown, model: string | undefined): number {
    return input === undefined ? 0 : this.#count(textOf(input), model);
  }

  inputTokens(counted: number, model: string | undefined): number {
    return Math.ceil(counted * (this.#of(model)?.ratio ?? 1));
  }

  outputTokens(model: string | undefined): number {
    return this.#of(model)?.outputTokens ?? this.#firstGuess;
  }

  learn(model: string | undefined, counted: number, { inputTokens, outputTokens }: Usage): void {
    const known = this.#of(model);
    const learned = known ?? { ratio: 1, outputTokens: this.#firstGuess };
    if (inputTokens !== undefined && counted > 0) {
      learned.ratio += (inputTokens / counted - learned.ratio) * RATIO_SHARE;
    }
    if (outputTokens !== undefined) {
      const faded = learned.outputTokens - Math.ceil(learned.outputTokens * FORGOTTEN_SHARE);
      learned.outputTokens = Math.max(1, outputTokens, known === undefined ? 0 : faded);
    }
    this.#learned.set(model ?? "", learned);
    if (this.#learned.size > MOST_MODELS) {
      const [oldest] = this.#learned.keys();
      this.#learned.delete(oldest);
    }
  }

  #of(model: string | undefined): Learned | undefined {
    return this.#learned.get(model ?? "");
  }
}

/** All the text in a prompt, whatever its shape; data: URLs are no text. */
function textOf(input: unknown): string {
  if (typeof input === "string") return input.startsWith("data:") ? "" : input;
  if (typeof input !== "object" || input === null || ArrayBuffer.isView(input)) return "";
  return Object.values(input).map(textOf).join(" ");
}
