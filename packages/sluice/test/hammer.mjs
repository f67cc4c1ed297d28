// @ts-check
// A process of its own that calls one limiter as fast as it can, told by messages when and for how long:
// arguments: client, clock's error in milliseconds. It answers with what it was told, by Redis' stamps.
import { argv, exit } from "node:process";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { createLimiter, slidingLog } from "sluice";
import { redisStore } from "sluice/redis";

const [, , kind, clockError = "0"] = argv;
const trueNow = Date.now;
Date.now = () => trueNow() + Number(clockError);

const CALLERS = 10;

/** @param {number} port */
async function connect(port) {
  if (kind === "ioredis") {
    const client = new Redis(port);
    client.on("error", () => {}); // Redis is killed on purpose
    return client;
  }
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** @param {{ port: number, key: string, limit: number, window: number, forMs: number }} task */
async function hammer({ port, key, limit, window, forMs }) {
  const store = redisStore(await connect(port));
  const limiter = createLimiter({ name: key, store, rules: slidingLog({ limit, window }) });
  const ends = performance.now() + forMs;
  /** @type {{ admitted: number[], denied: number[], failures: string[], slowestMs: number }} */
  const told = { admitted: [], denied: [], failures: [], slowestMs: 0 };
  async function call() {
    while (performance.now() < ends) {
      const started = performance.now();
      try {
        const { allowed, rules } = await limiter.tryAcquire(key);
        (allowed ? told.admitted : told.denied).push(rules[0]?.at ?? 0);
      } catch (error) {
        const { code = "no code", message } = /** @type {{ code?: string, message: string }} */ (error);
        told.failures.push(`${code}: ${message}`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      told.slowestMs = Math.max(told.slowestMs, performance.now() - started);
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, call));
  told.denied = [...new Set(told.denied)];
  return told;
}

process.on("message", async (task) => {
  process.send?.(await hammer(/** @type {Parameters<typeof hammer>[0]} */ (task)));
});
process.on("disconnect", () => exit());
process.send?.("ready");
