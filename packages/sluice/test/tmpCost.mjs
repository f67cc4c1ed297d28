import { spawn } from "node:child_process";
import { Redis } from "ioredis";
import { createBudget } from "sluice/llm";
import { redisStore } from "sluice/redis";

const port = 17999;
const server = spawn("redis-server", ["--port", port, "--save", "", "--appendonly", "no"], {
  stdio: "ignore",
});
const redis = new Redis(port, { retryStrategy: () => 50 });
redis.on("error", () => {});
const store = redisStore(redis);
const prices = { m: { input: 1, output: 2 } };
const L = {
  t: { name: "tpm", unit: "tokens", limit: 1e9, window: "1m", by: ["user"] },
  u: { name: "day", unit: "usd", limit: 1e6, window: "1d", by: ["user"] },
  c: { name: "parallel", unit: "concurrent", limit: 1000, lease: "2m", by: ["user"] },
};
const sets = { t: [L.t], tu: [L.t, L.u], c: [L.c], tc: [L.t, L.c], tuc: [L.t, L.u, L.c] };
for (const vary of [false, true])
  for (const [n, limits] of Object.entries(sets)) {
    const budget = createBudget({ name: n + vary, store, limits, prices });
    const best = { r: Infinity, s: Infinity };
    for (let round = 0; round < 6; round++) {
      let rs = 0,
        ss = 0;
      for (let k = 0; k < 2000; k += 100) {
        await redis.config("RESETSTAT");
        const res = await Promise.all(
          Array.from({ length: 100 }, (_, c) =>
            budget.tryReserve({
              user: `u${(k + c) % 200}`,
              model: "m",
              inputTokens: 100 + (vary ? c : 0),
              outputTokens: 300,
            }),
          ),
        );
        rs += Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats"))[1]);
        await redis.config("RESETSTAT");
        await Promise.all(
          res.map((r, c) => r.settle({ inputTokens: 90 + (vary ? c : 0), outputTokens: 120 })),
        );
        ss += Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(await redis.info("commandstats"))[1]);
      }
      best.r = Math.min(best.r, rs / 2000);
      best.s = Math.min(best.s, ss / 2000);
    }
    console.log(
      vary ? "varied" : "alike ",
      n.padEnd(4),
      "reserve",
      best.r.toFixed(2),
      "settle",
      best.s.toFixed(2),
    );
  }
redis.disconnect();
server.kill();
