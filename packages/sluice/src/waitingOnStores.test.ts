// Those who wait for a store that is far away: it takes its time, or fails.
import { describe, expect, it, vi } from "vitest";
import { onVirtualTime } from "../test/virtualTime.js";
import { diary, twoPerSecond } from "../test/waiters.js";
import { memoryStore } from "./stores/memory.js";
import { remotely } from "./testing/remotely.js";

onVirtualTime();

describe("a store that takes its time, or fails", () => {
  it("gets back what it charged for a caller who left meanwhile", async () => {
    const memory = memoryStore({ clock: Date.now });
    const store = remotely(memory);
    let answer = () => {};
    store.decide = async (charges, commit) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return memory.decide(charges, commit);
    };
    const { limiter } = twoPerSecond({ store });
    const { entries, acquire } = diary(limiter);
    acquire("leaver", { cost: 2, timeoutMs: 50 });
    await vi.advanceTimersByTimeAsync(50);
    expect(entries).toEqual(["leaver: TIMEOUT at 50"]);
    answer();
    await vi.advanceTimersByTimeAsync(0);
    expect((await limiter.status("a"))[0].count).toBe(0);
  });

  it("is asked again at once when something was given back while it was answering a denial", async () => {
    const memory = memoryStore({ clock: Date.now });
    const store = remotely(memory);
    store.decide = async (charges, commit) => {
      const answer = memory.decide(charges, commit);
      await new Promise((resolve) => setTimeout(resolve, 100));
      return answer;
    };
    const { limiter } = twoPerSecond({ store });
    const { entries, acquire } = diary(limiter);
    acquire("1st", { cost: 2 });
    await vi.advanceTimersByTimeAsync(100);
    acquire("2nd", { cost: 2 });
    await vi.advanceTimersByTimeAsync(50);
    await limiter.reset("a");
    await vi.advanceTimersByTimeAsync(150);
    expect(entries).toEqual(["1st at 100", "2nd at 300"]);
  });

  it("fails the call at the head of the line and no other", async () => {
    const { limiter, asked } = twoPerSecond();
    asked.mockImplementationOnce(() => {
      throw new Error("connection lost");
    });
    const { entries, acquire } = diary(limiter);
    acquire("1st");
    acquire("2nd");
    acquire("3rd");
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["1st: Error at 0", "2nd at 0", "3rd at 0"]);
  });

  it("admits in order when it answers by promises", async () => {
    const { limiter } = twoPerSecond({ store: remotely(memoryStore({ clock: Date.now })) });
    const { entries, acquire } = diary(limiter);
    for (const who of ["1st", "2nd", "3rd", "4th", "5th"]) acquire(who);
    await vi.advanceTimersByTimeAsync(2500);
    expect(entries).toEqual(["1st at 0", "2nd at 0", "3rd at 1000", "4th at 1000", "5th at 2000"]);
  });
});
