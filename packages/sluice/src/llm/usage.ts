/** What a call used. Cached tokens are part of the input. */
export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Of the input: what was read from the provider's cache. */
  readonly cachedInputTokens?: number;
  /** Of the input: what was written to the provider's cache. */
  readonly cacheWriteTokens?: number;
  /** Input and output together, where only that is known. */
  readonly tokens?: number;
  /** What it cost in dollars, where the caller knows better than the price table. */
  readonly usd?: number;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The usage in any shape there is: our own, the AI SDK's (flat, or objects with `total`), OpenAI's chat
 * and responses, Anthropic's; or a response with one of these as its `usage`. Undefined for any other,
 * since a shape that is not known must never count as nothing.
 */
export function readUsage(value: unknown): Usage | undefined {
  const fields = fieldsOf(value);
  if (fields === undefined) return undefined;
  return own(fields) ?? aiSdk(fields) ?? openAiChat(fields) ?? snakeCase(fields) ?? readUsage(fields.usage);
}

function own(fields: Fields): Usage | undefined {
  const details = fieldsOf(fields.inputTokenDetails);
  return made({
    inputTokens: count(fields.inputTokens),
    outputTokens: count(fields.outputTokens),
    cachedInputTokens: count(details?.cacheReadTokens) ?? count(fields.cachedInputTokens),
    cacheWriteTokens: count(details?.cacheWriteTokens) ?? count(fields.cacheWriteTokens),
    tokens: count(fields.tokens) ?? count(fields.totalTokens),
    usd: typeof fields.usd === "number" && fields.usd >= 0 ? fields.usd : undefined,
  });
}

/** The AI SDK's specification v3. */
function aiSdk(fields: Fields): Usage | undefined {
  const input = fieldsOf(fields.inputTokens);
  return made({
    inputTokens: count(input?.total),
    outputTokens: count(fieldsOf(fields.outputTokens)?.total),
    cachedInputTokens: count(input?.cacheRead),
    cacheWriteTokens: count(input?.cacheWrite),
  });
}

function openAiChat(fields: Fields): Usage | undefined {
  return made({
    inputTokens: count(fields.prompt_tokens),
    outputTokens:
      count(fields.completion_tokens) ?? (count(fields.prompt_tokens) === undefined ? undefined : 0),
    cachedInputTokens: count(fieldsOf(fields.prompt_tokens_details)?.cached_tokens),
  });
}

/** OpenAI's responses count cached tokens as input; Anthropic's input leaves them out. */
function snakeCase(fields: Fields): Usage | undefined {
  const inputTokens = count(fields.input_tokens);
  const outputTokens = count(fields.output_tokens);
  const details = fieldsOf(fields.input_tokens_details);
  if (details !== undefined) {
    return made({ inputTokens, outputTokens, cachedInputTokens: count(details.cached_tokens) });
  }
  const read = count(fields.cache_read_input_tokens) ?? 0;
  const written = count(fields.cache_creation_input_tokens) ?? 0;
  return made({
    inputTokens: inputTokens === undefined ? undefined : inputTokens + read + written,
    outputTokens,
    cachedInputTokens: read,
    cacheWriteTokens: written,
  });
}

type Loose = { readonly [P in keyof Usage]: Usage[P] | undefined };

/** Undefined unless something was told that can be charged. */
function made(usage: Loose): Usage | undefined {
  const { inputTokens, outputTokens, tokens, usd } = usage;
  const isTold = [inputTokens, outputTokens, tokens, usd].some((value) => value !== undefined);
  if (!isTold) return undefined;
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== undefined));
}

function count(value: unknown): number | undefined {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? Math.ceil(value) : undefined;
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null ? (value as Fields) : undefined;
}
