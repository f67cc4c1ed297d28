import { describe, expect, it } from "vitest";
import { stage, take } from "../../test/tierStage.js";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import type { Store } from "../store.js";
import { memoryStore } from "./memory.js";
import { resilient } from "./resilient.js";
import { type TieredOptions, tiered } from "./tiered.js";

describe("a refusal", () => {
  it("is remembered until the very millisecond it named, and no longer", async () => {
    const { clock, asked, process } = stage({ staleMs: 60_000 });
    const limiter = process(slidingLog({ limit: 3, window: 1000 }));
    await take(limiter, "a", 4);
    expect(asked.length).toBe(4);
    for (let n = 0; n < 998; n++) {
      clock.now++;
      const { allowed, retryAfterMs, resetAfterMs } = await limiter.tryAcquire("a");
      expect({ allowed, retryAfterMs, resetAfterMs }).toEqual({
        allowed: false,
        retryAfterMs: 999 - n,
        resetAfterMs: 999 - n,
      });
    }
    expect(asked.length).toBe(4);
    clock.now += 2;
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect(asked.length).toBe(5);
  });

  it("of a heavy cost leaves light ones alone", async () => {
    const { process } = stage();
    const limiter = process(slidingLog({ limit: 10, window: "1h" }));
    await limiter.tryAcquire("a", 3);
    expect((await limiter.tryAcquire("a", 50)).retryAfterMs).toBe(Infinity);
    expect((await limiter.tryAcquire("a", 8)).allowed).toBe(false);
    for (let n = 0; n < 7; n++) expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
  });

  it("is told exactly for each cost that is asked for, and costs of all sizes ask no more than a few times", async () => {
    const { asked, clock, process } = stage({ staleMs: 10_000 });
    const limiter = process(slidingLog({ limit: 10, window: 1000 }));
    for (let n = 0; n < 10; n++) {
      await limiter.tryAcquire("a");
      clock.now += 10;
    }
    expect((await limiter.tryAcquire("a", 1)).retryAfterMs).toBe(900);
    expect((await limiter.tryAcquire("a", 3)).retryAfterMs).toBe(920);
    expect((await limiter.tryAcquire("a", 3)).retryAfterMs).toBe(920);
    const before = asked.length;
    for (let n = 0; n < 1000; n++) expect((await limiter.tryAcquire("a", 1 + (n % 100))).allowed).toBe(false);
    expect(asked.length - before).toBeLessThanOrEqual(8);
  });

  it("is forgotten by a reset and by a settlement of this process", async () => {
    const { process } = stage();
    const limiter = process(slidingLog({ limit: 4, window: "1h" }));
    const reservation = await limiter.reserve("a", 4);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
    await reservation.settle(3);
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect((await limiter.tryAcquire("a")).allowed).toBe(false);
    await limiter.reset("a");
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
  });

  it("is forgotten where rules count by parts of a key, and limiters of one name share counts", async () => {
    const { process } = stage();
    const limiter = process([
      slidingLog({ name: "user", by: ["user"], limit: 1, window: "1h" }),
      slidingLog({ name: "ip", by: ["ip"], limit: 9, window: "1h" }),
    ]);
    await limiter.tryAcquire({ user: "1", ip: "x" });
    expect((await limiter.tryAcquire({ user: "1", ip: "x" })).rule).toBe("user");
    await limiter.reset({ user: "1", ip: "y" });
    expect((await limiter.tryAcquire({ user: "1", ip: "x" })).allowed).toBe(true);
  });

  it("is not believed when something was given back while it was asked for", async () => {
    const { gate, process } = stage();
    const limiter = process(slidingLog({ limit: 1, window: "1h" }));
    const reservation = await limiter.reserve("a", 1);
    let open = () => {};
    gate.open = new Promise((resolve) => {
      open = () => resolve();
    });
    const refused = limiter.tryAcquire("a");
    await Promise.resolve();
    await reservation.cancel();
    open();
    expect((await refused).allowed).toBe(false);
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
  });

  it("outlives another process's reset by staleMs at most", async () => {
    const { clock, process } = stage({ staleMs: 300 });
    const rules = slidingLog({ limit: 1, window: "1h" });
    const [here, there] = [process(rules), process(rules)];
    await take(here, "a", 2);
    await there.reset("a");
    expect((await here.tryAcquire("a")).allowed).toBe(false);
    clock.now += 300;
    expect((await here.tryAcquire("a")).allowed).toBe(true);
  });

  it("is remembered of maxKeys keys, those that were used last", async () => {
    const { asked, process } = stage({ maxKeys: 100 });
    const limiter = process(slidingLog({ limit: 1, window: "1h" }));
    for (let n = 0; n < 1000; n++) await take(limiter, `key ${n}`, 2);
    asked.length = 0;
    for (let n = 999; n >= 900; n--) await limiter.tryAcquire(`key ${n}`);
    expect(asked.length).toBe(0);
    for (let n = 0; n < 900; n++) await limiter.tryAcquire(`key ${n}`);
    expect(asked.length).toBe(900);
  });

  it("by an outage's policy is not remembered", async () => {
    const { counted, asked } = stage();
    const failing: Store = { ...counted, decide: async () => Promise.reject(new Error("down")) };
    const store = tiered(resilient(failing, { onOutage: "closed" }));
    const limiter = createLimiter({ store, rules: slidingLog({ limit: 1, window: "1h" }) });
    expect(await limiter.tryAcquire("a")).toMatchObject({ allowed: false, degraded: "closed" });
    failing.decide = counted.decide;
    expect((await limiter.tryAcquire("a")).allowed).toBe(true);
    expect(asked.length).toBe(1);
  });
});

it.each([
  [{ leases: 1 }, "leases must be true or false; got 1."],
  [{ staleMs: 0 }, "staleMs must be a whole number of at least 1"],
  [{ maxKeys: 0 }, "maxKeys must be a whole number from 1 to 10000000; got 0."],
  [{ clock: 5 }, "clock must be a function that returns milliseconds; got 5."],
])("refuses the options %j", (options, message) => {
  const creating = () => tiered(memoryStore(), options as unknown as TieredOptions);
  expect(creating).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  expect(creating).toThrow(message);
});
