import { describe, expect, it, vi } from "vitest";
import { messages, pricedBudget, useLlm } from "../../test/llmCalls.js";
import { memoryStore } from "../stores/memory.js";
import type { BudgetReservation } from "./index.js";

const llm = useLlm();

describe("the fetch hook", () => {
  it("hides the usage that it asked an OpenAI stream for, and shows it to who asked himself", async () => {
    const { budget } = pricedBudget(memoryStore());
    const request = { model: "m", messages, stream: true as const };
    const chunksOf = async (options = {}) => {
      const chunks = [];
      for await (const chunk of await llm
        .openai(budget)
        .chat.completions.create({ ...request, ...options })) {
        chunks.push(chunk);
      }
      return chunks;
    };
    expect((await chunksOf()).every(({ choices }) => choices.length === 1)).toBe(true);
    expect(llm.server.requests.at(-1)).toMatchObject({ stream_options: { include_usage: true } });
    expect((await chunksOf({ stream_options: { include_usage: true } })).at(-1)?.usage?.total_tokens).toBe(
      30,
    );
  });

  it("lets everything else pass untouched", async () => {
    const { budget, used } = pricedBudget(memoryStore());
    const fetch = vi.fn(async () => new Response("[]"));
    await budget.fetch({ user: "u" }, { fetch })("http://api.test/v1/models");
    await budget.fetch({ user: "u" }, { fetch })("http://api.test/v1/files", { method: "POST", body: "x" });
    expect(fetch).toHaveBeenCalledTimes(2);
    expect((await used()).rpm).toBe(0);
  });

  it("waits for a pause to end, at its true time, and then goes on", async () => {
    const { budget } = pricedBudget(memoryStore());
    llm.server.reply({ status: 429, headers: { "retry-after-ms": "300" } });
    await expect(llm.whole["openai chat"](budget)).rejects.toThrow("refused");
    llm.server.reply({});
    const began = performance.now();
    expect(await llm.whole["openai chat"](budget)).toBe("one two three four");
    expect(performance.now() - began).toBeGreaterThan(250);
  });

  it("waits its turn for a slot, and gives up when its request is aborted", async () => {
    const { budget } = pricedBudget(memoryStore());
    const held: BudgetReservation[] = [];
    for (let n = 0; n < 2; n++) held.push(await budget.reserve({ user: "u", model: "m", tokens: 1 }));
    const failed = llm.whole["openai chat"](budget, { timeoutMs: 50 });
    await expect(failed).rejects.toMatchObject({
      cause: { code: "TIMEOUT", decision: { rule: "parallel" } },
    });
    const controller = new AbortController();
    const aborted = llm.whole["openai chat"](budget, { signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    await expect(aborted).rejects.toThrow("aborted");
    const waiting = llm.whole["openai chat"](budget);
    await held[0].settle();
    expect(await waiting).toBe("one two three four");
  });

  it("hands out an answer though the store fails to settle it", async () => {
    const store = memoryStore();
    const onError = vi.fn();
    const { budget } = pricedBudget(store);
    vi.spyOn(store, "settle").mockImplementation(() => {
      throw new Error("connection lost");
    });
    expect(await llm.whole["openai chat"](budget, { onError })).toBe("one two three four");
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: "connection lost" }));
  });
});
