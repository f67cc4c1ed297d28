import fc from "fast-check";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { startRedis } from "../../../test/redisServer.js";
import { useRedis } from "../../../test/useRedis.js";
import type { Key } from "../../key.js";
import { createLimiter } from "../../limiter.js";
import { fixedWindow, slidingCells, slidingLog } from "../../rule.js";
import { redisStore } from "./index.js";

const { redis } = useRedis("--cluster-enabled", "yes");

const rules = [
  slidingLog({ limit: 5, window: "1m" }),
  slidingCells({ name: "hour", limit: 5, window: "1h" }),
  fixedWindow({ name: "day", limit: 5, window: "1d" }),
];

/** The Redis keys that a decision about this key uses. */
async function redisKeysOf(key: Key, name = "api", partition?: string): Promise<readonly string[]> {
  let keys: readonly string[] = [];
  const answer = async (_: string, keyCount: number, ...rest: string[]) => {
    keys = rest.slice(0, keyCount);
    return Array(1 + 4 * keyCount).fill(0);
  };
  const store = redisStore({ evalsha: answer, eval: answer });
  await createLimiter({ name, store, rules, ...(partition && { partition }) }).tryAcquire(key);
  return keys;
}

const HOSTILE: readonly string[] = [
  "a",
  "{a}",
  "}a",
  "}{",
  "{}",
  "{}a",
  "a}b{c",
  "%7b",
  "%007b",
  "%",
  " ",
  "a b",
  "a\nb",
  "a\r\nDEL b",
  "\0",
  "a\0b",
  "😀",
  "\ud83d",
  "\ude00",
  "\ude00\ud83d",
  "\ufffd",
  "*",
  "?",
  "[a-z]",
  "../../etc/passwd",
  "a/api/1m/log",
  "/",
  "//",
  "/api/1m/log",
  "sluice:{a}/api/1m/log",
  "a=b&c=d",
  "é",
  "e\u0301",
  "x".repeat(10_240),
  "{".repeat(10_240),
  `${"x".repeat(10_239)}y`,
];

/** Texts of any 16-bit units, halves of pairs too, and often of what means something to Redis or to us. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(..."{}%/ *\n\0a=&\\:"),
      fc.nat({ max: 0xffff }).map((c) => String.fromCharCode(c)),
    ),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(""));
const key = fc.oneof(
  text,
  fc.constantFrom(...HOSTILE),
  fc.record({ user: text }),
  fc.record({ user: text, org: text }),
);

describe("hostile keys", () => {
  test("no two keys meet in Redis, as bytes", async () => {
    await fc.assert(
      fc.asyncProperty(key, key, async (a, b) => {
        const [ofA, ofB] = [await redisKeysOf(a), await redisKeysOf(b)].map((keys) =>
          keys.map((each) => Buffer.from(each).toString("hex")),
        );
        expect(new Set([...ofA, ...ofB]).size).toBe(JSON.stringify(a) === JSON.stringify(b) ? 3 : 6);
      }),
      { numRuns: 500 },
    );
  });

  test("nor do those of limiters and partitions of other names", async () => {
    const names = fc.constantFrom("api", "a", "api 1", "a.b", "1m", "log");
    const parts = fc.constantFrom("user", "org", undefined);
    const limited = fc.tuple(fc.record({ user: text, org: text }), names, parts);
    await fc.assert(
      fc.asyncProperty(limited, limited, async (a, b) => {
        const keys = [...(await redisKeysOf(...a)), ...(await redisKeysOf(...b))];
        const isSame = JSON.stringify(a) === JSON.stringify(b);
        // The same limiter with another partition is a change of its configuration, not another limiter.
        fc.pre(isSame || a[1] !== b[1] || a[2] === b[2]);
        expect(new Set(keys).size).toBe(isSame ? 3 : 6);
      }),
      { numRuns: 500 },
    );
  });

  test("all keys of one decision are in one slot, which the key decides and nothing else", async () => {
    const slots = new Set<number>();
    await fc.assert(
      fc.asyncProperty(key, async (each) => {
        const keys = await redisKeysOf(each);
        const slotOf = async (name: string) => Number(await redis.call("CLUSTER", "KEYSLOT", name));
        const own = new Set(await Promise.all(keys.map(slotOf)));
        expect(own.size).toBe(1);
        const [slot] = own;
        slots.add(slot);
        for (const name of keys) expect(name).toMatch(/^sluice:\{[^{}]+\}[^{}]*$/s);
      }),
      { numRuns: 200 },
    );
    expect(slots.size).toBeGreaterThan(50);
  });

  test("each has a count of its own on a real server, and a reset reaches no other", async () => {
    const single = await startRedis();
    const client = new Redis(single.port);
    const limiter = createLimiter({
      store: redisStore(client),
      rules: slidingLog({ limit: 2, window: "1h" }),
    });
    const take = () => Promise.all(HOSTILE.map(async (each) => (await limiter.tryAcquire(each)).remaining));
    expect(await take()).toEqual(HOSTILE.map(() => 1));
    expect(await take()).toEqual(HOSTILE.map(() => 0));
    expect(await client.dbsize()).toBe(HOSTILE.length);
    for (const [k, each] of HOSTILE.entries()) {
      await limiter.reset(each);
      expect(await client.dbsize()).toBe(HOSTILE.length - 1 - k);
    }
    client.disconnect();
    await single.stop();
  });
});
