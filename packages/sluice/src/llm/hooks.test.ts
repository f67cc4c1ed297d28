import { randomUUID } from "node:crypto";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, wrapLanguageModel } from "ai";
import { Redis } from "ioredis";
import OpenAI, { AzureOpenAI } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type LlmServer, startLlmServer } from "../../test/llmServer.js";
import { type RedisServer, startRedis } from "../../test/redisServer.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { redisStore } from "../stores/redis/index.js";
import { type Budget, type BudgetReservation, createBudget, type HookOptions } from "./index.js";

let server: LlmServer;
let redisServer: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startLlmServer();
  redisServer = await startRedis();
  redis = new Redis(redisServer.port);
});
afterAll(async () => {
  redis.disconnect();
  await redisServer.stop();
  await server.stop();
});
beforeEach(() => server.reply({}));

const prompt = "How much wood would a woodchuck chuck?";
const messages = [{ role: "user" as const, content: prompt }];

/** Every way to call a model that there is a hook for. Each tells the text that came. */
type Call = (budget: Budget, options?: HookOptions & { signal?: AbortSignal }) => Promise<string>;

function openai(budget: Budget, options: HookOptions = {}): OpenAI {
  return new OpenAI({
    apiKey: "k",
    baseURL: `${server.url}/v1`,
    fetch: budget.fetch({ user: "u" }, options),
    maxRetries: 0,
  });
}

/** Called as text comes in. */
let onText = () => {};

async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const part of parts) {
    text += part;
    if (part !== "") onText();
  }
  return text;
}

async function* contents(stream: AsyncIterable<OpenAI.ChatCompletionChunk>): AsyncIterable<string> {
  for await (const chunk of stream) yield chunk.choices[0].delta.content ?? "";
}

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
const errors: unknown[] = [];
const onError = ({ error }: { error: unknown }) => void errors.push(error);

const WHOLE: Readonly<Record<string, Call>> = {
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

const STREAMS: Readonly<Record<string, Call>> = {
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

const LIMITS = [
  { name: "rpm", unit: "requests", limit: 100, window: "1m", by: ["user"] },
  { name: "tpm", unit: "tokens", limit: 1000, window: "1m", by: ["user"] },
  { name: "usd", unit: "usd", limit: 1, window: "1d", by: ["user", "model"] },
  { name: "parallel", unit: "concurrent", limit: 2, lease: "1m", by: ["user"] },
] as const;
const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(redis, { prefix: `${randomUUID()}:` }),
};

function world(store: () => Store) {
  const budget = createBudget({
    store: store(),
    limits: LIMITS,
    prices: { m: { input: 1, output: 2, cachedInput: 0.5 } },
  });
  const used = async () => {
    const held = await budget.status({ user: "u", model: "m" });
    return Object.fromEntries(held.map(({ rule, count }) => [rule, count]));
  };
  return { budget, used };
}

for (const [storeName, store] of Object.entries(STORES)) {
  describe(`on ${storeName}`, () => {
    for (const [kind, calls] of Object.entries({ "in one piece": WHOLE, streamed: STREAMS })) {
      describe(`an answer ${kind}`, () => {
        it.each(Object.entries(calls))("%s: is settled by the provider's own count", async (_, call) => {
          const { budget, used } = world(store);
          server.reply({ inputTokens: 200, outputTokens: 25, cachedTokens: 100 });
          expect(await call(budget)).toBe("one two three four");
          await vi.waitFor(async () => {
            expect(await used()).toEqual({ rpm: 1, tpm: 125, usd: 0.0002, parallel: 0 });
          });
        });

        it.each(Object.entries(calls))(
          "%s: a 429 gives everything back and pauses the upstream",
          async (_, call) => {
            const { budget, used } = world(store);
            server.reply({ status: 429, headers: { "retry-after-ms": "30000" } });
            errors.length = 0;
            const failed = await call(budget, { upstream: "up" }).then(
              () => errors[0],
              (error) => error,
            );
            expect(String(failed)).toMatch(/refused|Too Many Requests/);
            expect(await used()).toEqual({ rpm: 0, tpm: 0, usd: 0, parallel: 0 });
            const paused = await budget.tryReserve({ user: "u", model: "m", tokens: 1, upstream: "up" });
            expect(paused.decision).toMatchObject({ allowed: false, rule: "upstream" });
            expect(paused.decision.retryAfterMs).toBeGreaterThan(25_000);
            expect(paused.decision.retryAfterMs).toBeLessThanOrEqual(30_000);
          },
        );
      });
    }

    it.each(Object.entries(STREAMS))(
      "2: %s: an aborted stream frees its slot and settles what was used",
      async (_, call) => {
        const { budget, used } = world(store);
        const controller = new AbortController();
        const came = new Promise<void>((resolve) => {
          onText = resolve;
        });
        server.reply({ text: "four and five and six and", inputTokens: 40, outputTokens: 900, hangAfter: 4 });
        const failed = call(budget, { signal: controller.signal }).catch((error) => error);
        await vi.waitFor(async () => expect(await used()).toMatchObject({ parallel: 1 }));
        await came;
        controller.abort();
        await failed;
        await vi.waitFor(async () => expect(await used()).toMatchObject({ rpm: 1, parallel: 0 }));
        const { tpm } = await used();
        expect(tpm).toBeGreaterThan(10);
        expect(tpm).toBeLessThan(60);
      },
    );

    it("5: an answer of a new shape is never read as zero", async () => {
      const { budget, used } = world(store);
      const onUnknownUsage = vi.fn();
      server.reply({ isOdd: true });
      await WHOLE["openai chat"](budget, { onUnknownUsage });
      const { tpm, parallel } = await used();
      expect(tpm).toBeGreaterThanOrEqual(30);
      expect(parallel).toBe(0);
      expect(onUnknownUsage).toHaveBeenCalledWith(expect.objectContaining({ metering: { spent: 10 } }));
    });

    it("8: an agent's loop ends at its cap", async () => {
      const { budget } = world(store);
      const run = budget.run({ steps: 3 });
      const client = openai(run);
      let steps = 0;
      const loop = async () => {
        for (;;) {
          await client.chat.completions.create({ model: "m", messages, max_completion_tokens: 30 });
          steps++;
        }
      };
      await expect(loop()).rejects.toMatchObject({ cause: { code: "RUN_OVER" } });
      expect(steps).toBe(3);
    });
  });
}

describe("the fetch hook", () => {
  it("hides the usage that it asked an OpenAI stream for, and shows it to who asked himself", async () => {
    const { budget } = world(STORES.memory);
    const request = { model: "m", messages, stream: true as const };
    const chunksOf = async (options = {}) => {
      const chunks = [];
      for await (const chunk of await openai(budget).chat.completions.create({ ...request, ...options })) {
        chunks.push(chunk);
      }
      return chunks;
    };
    expect((await chunksOf()).every(({ choices }) => choices.length === 1)).toBe(true);
    expect(server.requests.at(-1)).toMatchObject({ stream_options: { include_usage: true } });
    expect((await chunksOf({ stream_options: { include_usage: true } })).at(-1)?.usage?.total_tokens).toBe(
      30,
    );
  });

  it("lets everything else pass untouched", async () => {
    const { budget, used } = world(STORES.memory);
    const fetch = vi.fn(async () => new Response("[]"));
    await budget.fetch({ user: "u" }, { fetch })("http://api.test/v1/models");
    await budget.fetch({ user: "u" }, { fetch })("http://api.test/v1/files", { method: "POST", body: "x" });
    expect(fetch).toHaveBeenCalledTimes(2);
    expect((await used()).rpm).toBe(0);
  });

  it("waits for a pause to end, at its true time, and then goes on", async () => {
    const { budget } = world(STORES.memory);
    server.reply({ status: 429, headers: { "retry-after-ms": "300" } });
    await expect(WHOLE["openai chat"](budget)).rejects.toThrow("refused");
    server.reply({});
    const began = performance.now();
    expect(await WHOLE["openai chat"](budget)).toBe("one two three four");
    expect(performance.now() - began).toBeGreaterThan(250);
  });

  it("waits its turn for a slot, and gives up when its request is aborted", async () => {
    const { budget } = world(STORES.memory);
    const held: BudgetReservation[] = [];
    for (let n = 0; n < 2; n++) held.push(await budget.reserve({ user: "u", model: "m", tokens: 1 }));
    const failed = WHOLE["openai chat"](budget, { timeoutMs: 50 });
    await expect(failed).rejects.toMatchObject({
      cause: { code: "TIMEOUT", decision: { rule: "parallel" } },
    });
    const controller = new AbortController();
    const aborted = WHOLE["openai chat"](budget, { signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await expect(aborted).rejects.toThrow("aborted");
    const waiting = WHOLE["openai chat"](budget);
    await held[0].settle();
    expect(await waiting).toBe("one two three four");
  });

  it("hands out an answer though the store fails to settle it", async () => {
    const store = memoryStore();
    const onError = vi.fn();
    const { budget } = world(() => store);
    vi.spyOn(store, "settle").mockImplementation(() => {
      throw new Error("connection lost");
    });
    expect(await WHOLE["openai chat"](budget, { onError })).toBe("one two three four");
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: "connection lost" }));
  });
});
