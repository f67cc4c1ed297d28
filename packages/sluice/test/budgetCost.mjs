// @ts-check
// `node packages/sluice/test/budgetCost.mjs`: what a reserve and a settle cost Redis, against one tryAcquire.
// Microseconds of Redis per call by INFO commandstats, in turns within one run; the best of several rounds.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { Redis } from "ioredis";
import { concurrent, createLimiter, slidingLog } from "sluice";
import { createBudget } from "sluice/llm";
import { redisStore } from "sluice/redis";

const CALLS = 2000;
const AT_ONCE = 100;
const ROUNDS = 7;
const USERS = 200;

const port = await new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
    server.close(() => resolve(port));
  });
});
const server = spawn("redis-server", ["--port", port, "--save", "", "--appendonly", "no"], {
  stdio: "ignore",
});
const redis = new Redis(port, { retryStrategy: () => 50 });
redis.on("error", () => {});
const store = redisStore(redis);

const prices = { m: { input: 1, output: 2 } };
/** @type {import("sluice/llm").Limit[]} */
const limits = [
  { name: "tpm", unit: "tokens", limit: 1e9, window: "1m", by: ["user"] },
  { name: "day", unit: "usd", limit: 1e6, window: "1d", by: ["user"] },
  { name: "parallel", unit: "concurrent", limit: 1000, lease: "2m", by: ["user"] },
];
const rules = [
  slidingLog({ name: "tpm", limit: 1e9, window: "1m", by: ["user"] }),
  slidingLog({ name: "day", limit: 1e9, window: "1d", by: ["user"] }),
  concurrent({ name: "parallel", limit: 1e9, lease: "2m", by: ["user"] }),
];
const one = createLimiter({ name: "one", store, rules: [rules[0]] });
const three = createLimiter({ name: "three", store, rules });
const small = createBudget({ name: "small", store, limits: [limits[0]], prices });
const whole = createBudget({ name: "whole", store, limits, prices });

/** @param {import("sluice/llm").Budget} budget */
const reserveAndSettle = (budget) => async (/** @type {string} */ user) => {
  const reservation = await budget.tryReserve({ user, model: "m", inputTokens: 100, outputTokens: 300 });
  await reservation.settle({ inputTokens: 90, outputTokens: 120 });
};
/** @type {Record<string, (user: string) => Promise<unknown>>} */
const work = {
  "tryAcquire, one rule": (user) => one.tryAcquire({ user }, 400),
  "tryAcquire, three rules": (user) => three.tryAcquire({ user }, 1),
  "reserve + settle, one limit": reserveAndSettle(small),
  "reserve + settle, three limits": reserveAndSettle(whole),
};

/** @type {Record<string, number>} */
const best = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, call] of Object.entries(work)) {
    await redis.config("RESETSTAT");
    for (let n = 0; n < CALLS; n += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, c) => call(`u${(n + c) % USERS}`)));
    }
    const [, usec] = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats")) ?? [];
    best[name] = Math.min(best[name] ?? Infinity, Number(usec) / CALLS);
  }
}
for (const [name, usec] of Object.entries(best))
  console.log(`${name.padEnd(32)} ${usec.toFixed(2)} us of Redis per call`);
const ratio = (/** @type {string} */ a, /** @type {string} */ b) => (best[a] / best[b]).toFixed(2);
console.log(
  `one limit, against one rule      ${ratio("reserve + settle, one limit", "tryAcquire, one rule")}`,
);
console.log(
  `three limits, against three rules ${ratio("reserve + settle, three limits", "tryAcquire, three rules")}`,
);
console.log(
  `three limits, against one rule   ${ratio("reserve + settle, three limits", "tryAcquire, one rule")}`,
);
redis.disconnect();
server.kill();
