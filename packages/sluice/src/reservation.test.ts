import { describe, expect, it } from "vitest";
import { createLimiter } from "./limiter.js";
import { slidingLog } from "./rule.js";
import { memoryStore } from "./stores/memory.js";

/** A limiter of 10 per second, on time that stands still until it is set. */
function tenPerSecond() {
  const clock = { now: 5000 };
  const limiter = createLimiter({
    rules: slidingLog({ limit: 10, window: 1000 }),
    store: memoryStore({ clock: () => clock.now }),
  });
  const used = async () => (await limiter.status("a"))[0].count;
  return { clock, limiter, used };
}

describe("a reservation", () => {
  it("takes its cost at once", async () => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    expect(reservation.decision.allowed).toBe(true);
    expect(reservation.cost).toBe(4);
    expect(await used()).toBe(4);
  });

  it.each([
    [6, 6],
    [1, 1],
    [0, 0],
    [4, 4],
    [40, 40],
  ])("settled to %d counts %d", async (actual, counted) => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    await reservation.settle(actual);
    expect(await used()).toBe(counted);
  });

  it("is charged at its own time, not at that of its settlement", async () => {
    const { clock, limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    clock.now += 600;
    await limiter.tryAcquire("a");
    await reservation.settle(8);
    expect(await used()).toBe(9);
    clock.now += 400;
    expect(await used()).toBe(1);
  });

  it("settled after its time has left the window changes nothing", async () => {
    const { clock, limiter, used } = tenPerSecond();
    const [up, down] = [await limiter.reserve("a", 4), await limiter.reserve("a", 4)];
    clock.now += 1000;
    await limiter.tryAcquire("a", 3);
    await up.settle(9);
    await down.cancel();
    expect(await used()).toBe(3);
  });

  it("counts the first settlement and no other, even in parallel", async () => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    await Promise.all([reservation.settle(7), reservation.cancel(), reservation.settle(1)]);
    await reservation.cancel();
    expect(await used()).toBe(7);
  });

  it("settled to what it took stays as it is when cancelled afterwards", async () => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    await reservation.settle(4);
    await reservation.cancel();
    expect(await used()).toBe(4);
  });

  it("that was denied took nothing and gives nothing back", async () => {
    const { limiter, used } = tenPerSecond();
    await limiter.tryAcquire("a", 8);
    const reservation = await limiter.reserve("a", 4);
    expect(reservation.decision).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    await reservation.settle(9);
    await reservation.cancel();
    expect(await used()).toBe(8);
  });

  it("never brings a count below zero", async () => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    await limiter.reset("a");
    await limiter.tryAcquire("a", 1);
    await reservation.cancel();
    expect(await used()).toBe(0);
    expect((await limiter.peek("a")).remaining).toBe(10);
  });

  it("left unsettled by `await using` gives everything back", async () => {
    const { limiter, used } = tenPerSecond();
    const failing = async () => {
      await using reservation = await limiter.reserve("a", 4);
      expect(reservation.decision.remaining).toBe(6);
      throw new Error("the work failed");
    };
    await expect(failing()).rejects.toThrow("the work failed");
    expect(await used()).toBe(0);
  });

  it("settled inside `await using` keeps what it settled to", async () => {
    const { limiter, used } = tenPerSecond();
    {
      await using reservation = await limiter.reserve("a", 4);
      await reservation.settle(2);
    }
    expect(await used()).toBe(2);
  });

  it("can be settled again when the first attempt met bad input", async () => {
    const { limiter, used } = tenPerSecond();
    const reservation = await limiter.reserve("a", 4);
    await expect(reservation.settle(-1)).rejects.toMatchObject({ code: "INVALID_COST" });
    await reservation.settle(1);
    expect(await used()).toBe(1);
  });
});
