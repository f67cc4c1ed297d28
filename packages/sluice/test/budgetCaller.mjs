// @ts-check
// A process of its own that makes calls on a shared budget; told by a message what to do.
import { argv, exit } from "node:process";
import { Redis } from "ioredis";
import { createBudget } from "sluice/llm";
import { redisStore } from "sluice/redis";

const redis = new Redis(Number(argv[2]));

/**
 * Calls at once, each of which reserves `most` tokens, uses some of them, and settles.
 * @param {{ name: string, calls: number, most: number, limits: import("sluice/llm").Limit[] }} task
 */
async function spend({ name, calls, most, limits }) {
  const budget = createBudget({ name, store: redisStore(redis), limits });
  const call = async (/** @type {number} */ n) => {
    const reservation = await budget.reserve({ user: "u", tokens: most });
    const tokens = [0, 1, most >> 1, most][(n * 7) % 4] ?? most;
    await new Promise((resolve) => setTimeout(resolve, n % 5));
    await reservation.settle({ tokens });
    return { at: reservation.decision.rules[0]?.at ?? 0, tokens };
  };
  return Promise.all(Array.from({ length: calls }, (_, n) => call(n)));
}

/**
 * Reserves and never settles; on Redis' own time, or on one that stands.
 * @param {{ name: string, limits: import("sluice/llm").Limit[], now?: number, subject?: object }} task
 */
async function hold({ name, limits, now, subject }) {
  const store = redisStore(redis, now === undefined ? {} : { clock: () => now });
  const budget = createBudget({ name, store, limits });
  await budget.reserve({ user: "u", tokens: 1, ...subject });
  return "held";
}

process.on("message", async (/** @type {any} */ task) => {
  process.send?.(await (task.verb === "hold" ? hold(task) : spend(task)));
});
process.on("disconnect", () => exit());
process.send?.("ready");
