import { describe, expect, it } from "vitest";
import { readUsage } from "./usage.js";

describe("usage is read", () => {
  it.each([
    ["our own", { inputTokens: 5, outputTokens: 7 }, { inputTokens: 5, outputTokens: 7 }],
    ["a total", { tokens: 12 }, { tokens: 12 }],
    [
      "the AI SDK's result",
      {
        inputTokens: 5,
        outputTokens: 7,
        totalTokens: 12,
        inputTokenDetails: { cacheReadTokens: 3, cacheWriteTokens: 1 },
      },
      { inputTokens: 5, outputTokens: 7, tokens: 12, cachedInputTokens: 3, cacheWriteTokens: 1 },
    ],
    [
      "the AI SDK's specification v3",
      { inputTokens: { total: 5, noCache: 2, cacheRead: 3 }, outputTokens: { total: 7, text: 7 } },
      { inputTokens: 5, outputTokens: 7, cachedInputTokens: 3 },
    ],
    [
      "OpenAI's chat",
      {
        prompt_tokens: 5,
        completion_tokens: 7,
        total_tokens: 12,
        prompt_tokens_details: { cached_tokens: 3 },
      },
      { inputTokens: 5, outputTokens: 7, cachedInputTokens: 3 },
    ],
    ["OpenAI's embeddings", { prompt_tokens: 5, total_tokens: 5 }, { inputTokens: 5, outputTokens: 0 }],
    [
      "OpenAI's responses",
      { input_tokens: 5, output_tokens: 7, total_tokens: 12, input_tokens_details: { cached_tokens: 3 } },
      { inputTokens: 5, outputTokens: 7, cachedInputTokens: 3 },
    ],
    [
      "Anthropic's, whose input leaves the cache out",
      { input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 30, cache_creation_input_tokens: 20 },
      { inputTokens: 55, outputTokens: 7, cachedInputTokens: 30, cacheWriteTokens: 20 },
    ],
    ["a response that has one", { id: "r", usage: { tokens: 3 } }, { tokens: 3 }],
  ])("%s", (_, value, usage) => {
    expect(readUsage(value)).toEqual(usage);
  });

  it.each([
    undefined,
    null,
    7,
    {},
    { usage: {} },
    { inputTokens: -1 },
    { inputTokens: Number.NaN },
    { inputTokens: { total: undefined }, outputTokens: { total: undefined } },
    { prompt_tokens: "5" },
  ])("and %j is none", (value) => {
    expect(readUsage(value)).toBe(undefined);
  });
});
