import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, wrapLanguageModel } from "ai";
import OpenAI, { AzureOpenAI } from "openai";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type Budget, createBudget, type HookOptions } from "../src/llm/index.js";
import type { Store } from "../src/store.js";
import { type LlmServer, startLlmServer } from "./llmServer.js";

const prompt = "How much wood would a woodchuck chuck?";
export const messages = [{ role: "user" as const, content: prompt }];

/** Tells the text that came. */
type Call = (budget: Budget, options?: HookOptions & { signal?: AbortSignal }) => Promise<string>;

/** A provider for the tests of one file, and every way to call a model of it that there is a hook for. */
interface Llm {
  readonly server: LlmServer;
  openai(budget: Budget, options?: HookOptions): OpenAI;
  /** By name; their answers come in one piece. */
  readonly whole: Readonly<Record<string, Call>>;
  readonly streams: Readonly<Record<string, Call>>;
  /** What streams have failed with since the test began, where their client does not throw it. */
  readonly failures: readonly unknown[];
  /** Resolves when a stream brings text. */
  nextText(): Promise<void>;
}

export function useLlm(): Llm {
  let server: LlmServer;
  let onText = () => {};
  const failures: unknown[] = [];
  beforeAll(async () => {
    server = await startLlmServer();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    server.reply({});
    failures.length = 0;
  });

  const openai = (budget: Budget, options: HookOptions = {}) =>
    new OpenAI({
      apiKey: "k",
      baseURL: `${server.url}/v1`,
      fetch: budget.fetch({ user: "u" }, options),
      maxRetries: 0,
    });
  const openaiModel = (budget: Budget, options: HookOptions = {}) =>
    wrapLanguageModel({
      model: createOpenAI({ apiKey: "k", baseURL: `${server.url}/v1` }).chat("m"),
      middleware: budget.aiSdk({ user: () => "u" }, options),
    });
  const anthropicModel = (budget: Budget, options: HookOptions = {}) =>
    wrapLanguageModel({
      model: createAnthropic({ apiKey: "k", baseURL: `${server.url}/v1` })("m"),
      middleware: budget.aiSdk({ user: "u" }, options),
    });
  const onError = ({ error }: { error: unknown }) => void failures.push(error);

  async function textOf(parts: AsyncIterable<string>): Promise<string> {
    let text = "";
    for await (const part of parts) {
      text += part;
      if (part !== "") onText();
    }
    return text;
  }

  const whole: Readonly<Record<string, Call>> = {
    "openai chat": async (budget, { signal, ...options } = {}) => {
      const made = await openai(budget, options).chat.completions.create(
        { model: "m", messages, max_completion_tokens: 30 },
        { signal },
      );
      return made.choices[0].message.content ?? "";
    },
    "openai responses": async (budget, { signal, ...options } = {}) => {
      const made = await openai(budget, options).responses.create(
        { model: "m", input: prompt, max_output_tokens: 30 },
        { signal },
      );
      return made.output_text;
    },
    "azure chat": async (budget, { signal, ...options } = {}) => {
      const client = new AzureOpenAI({
        apiKey: "k",
        apiVersion: "2024-10-21",
        endpoint: server.url,
        deployment: "m",
        fetch: budget.fetch({ user: "u" }, options),
        maxRetries: 0,
      });
      const made = await client.chat.completions.create({ model: "", messages, max_tokens: 30 }, { signal });
      return made.choices[0].message.content ?? "";
    },
    "anthropic by fetch": async (budget, { signal, ...options } = {}) => {
      const anthropic = createAnthropic({
        apiKey: "k",
        baseURL: `${server.url}/v1`,
        fetch: budget.fetch({ user: "u" }, options),
      });
      const abort = signal && { abortSignal: signal };
      return (
        await generateText({ model: anthropic("m"), prompt, maxOutputTokens: 30, maxRetries: 0, ...abort })
      ).text;
    },
    "ai with openai": async (budget, { signal, ...options } = {}) => {
      const model = openaiModel(budget, options);
      const abort = signal && { abortSignal: signal };
      return (await generateText({ model, prompt, maxOutputTokens: 30, maxRetries: 0, ...abort })).text;
    },
    "ai with anthropic": async (budget, { signal, ...options } = {}) => {
      const model = anthropicModel(budget, options);
      const abort = signal && { abortSignal: signal };
      return (await generateText({ model, prompt, maxOutputTokens: 30, maxRetries: 0, ...abort })).text;
    },
  };

  const streams: Readonly<Record<string, Call>> = {
    "openai chat": async (budget, { signal, ...options } = {}) => {
      const request = { model: "m", messages, max_completion_tokens: 30, stream: true as const };
      return textOf(contents(await openai(budget, options).chat.completions.create(request, { signal })));
    },
    "openai responses": async (budget, { signal, ...options } = {}) => {
      const request = { model: "m", input: prompt, max_output_tokens: 30, stream: true as const };
      let text = "";
      for await (const event of await openai(budget, options).responses.create(request, { signal })) {
        if (event.type !== "response.output_text.delta") continue;
        text += event.delta;
        onText();
      }
      return text;
    },
    "ai with openai": async (budget, { signal, ...options } = {}) => {
      const model = openaiModel(budget, options);
      const abort = signal && { abortSignal: signal };
      const made = streamText({ model, prompt, maxOutputTokens: 30, maxRetries: 0, onError, ...abort });
      return textOf(made.textStream);
    },
    "ai with anthropic": async (budget, { signal, ...options } = {}) => {
      const model = anthropicModel(budget, options);
      const abort = signal && { abortSignal: signal };
      const made = streamText({ model, prompt, maxOutputTokens: 30, maxRetries: 0, onError, ...abort });
      return textOf(made.textStream);
    },
  };

  return {
    get server() {
      return server;
    },
    openai,
    whole,
    streams,
    failures,
    nextText: () =>
      new Promise((resolve) => {
        onText = resolve;
      }),
  };
}

async function* contents(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): AsyncIterable<string> {
  for await (const chunk of stream) yield chunk.choices[0].delta.content ?? "";
}

const LIMITS = [
  { name: "rpm", unit: "requests", limit: 100, window: "1m", by: ["user"] },
  { name: "tpm", unit: "tokens", limit: 1000, window: "1m", by: ["user"] },
  { name: "usd", unit: "usd", limit: 1, window: "1d", by: ["user", "model"] },
  { name: "parallel", unit: "concurrent", limit: 2, lease: "1m", by: ["user"] },
] as const;

/** A budget of every unit, and what it has counted by limit. */
export function pricedBudget(store: Store) {
  const budget = createBudget({
    store,
    limits: LIMITS,
    prices: { m: { input: 1, output: 2, cachedInput: 0.5 } },
  });
  const used = async () => {
    const held = await budget.status({ user: "u", model: "m" });
    return Object.fromEntries(held.map(({ rule, count }) => [rule, count]));
  };
  return { budget, used };
}
