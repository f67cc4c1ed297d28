import { randomUUID } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { messages, pricedBudget, useLlm } from "../../test/llmCalls.js";
import { useRedis } from "../../test/useRedis.js";
import type { Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { redisStore } from "../stores/redis/index.js";

const llm = useLlm();
const { redis } = useRedis();

const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(redis, { prefix: `${randomUUID()}:` }),
};

for (const [storeName, store] of Object.entries(STORES)) {
  describe(`on ${storeName}`, () => {
    for (const [kind, calls] of Object.entries({ "in one piece": llm.whole, streamed: llm.streams })) {
      describe(`an answer ${kind}`, () => {
        it.each(Object.entries(calls))("%s: is settled by the provider's own count", async (_, call) => {
          const { budget, used } = pricedBudget(store());
          llm.server.reply({ inputTokens: 200, outputTokens: 25, cachedTokens: 100 });
          expect(await call(budget)).toBe("one two three four");
          await vi.waitFor(async () => {
            expect(await used()).toEqual({ rpm: 1, tpm: 125, usd: 0.0002, parallel: 0 });
          });
        });

        it.each(Object.entries(calls))(
          "%s: a 429 gives everything back and pauses the upstream",
          async (_, call) => {
            const { budget, used } = pricedBudget(store());
            llm.server.reply({ status: 429, headers: { "retry-after-ms": "30000" } });
            const failed = await call(budget, { upstream: "up" }).then(
              () => llm.failures[0],
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

    it.each(Object.entries(llm.streams))(
      "2: %s: an aborted stream frees its slot and settles what was used",
      async (_, call) => {
        const { budget, used } = pricedBudget(store());
        const controller = new AbortController();
        const came = llm.nextText();
        llm.server.reply({
          text: "four and five and six and",
          inputTokens: 40,
          outputTokens: 900,
          hangAfter: 4,
        });
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
      const { budget, used } = pricedBudget(store());
      const onUnknownUsage = vi.fn();
      llm.server.reply({ isOdd: true });
      await llm.whole["openai chat"](budget, { onUnknownUsage });
      const { tpm, parallel } = await used();
      expect(tpm).toBeGreaterThanOrEqual(30);
      expect(parallel).toBe(0);
      expect(onUnknownUsage).toHaveBeenCalledWith(expect.objectContaining({ metering: { spent: 10 } }));
    });

    it("8: an agent's loop ends at its cap", async () => {
      const { budget } = pricedBudget(store());
      const run = budget.run({ steps: 3 });
      const client = llm.openai(run);
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
