import { describe, expect, it, vi } from "vitest";
import { budgetOf, budgetsOnVirtualTime, parallel, tpm } from "../../test/budgets.js";
import { memoryStore } from "../stores/memory.js";
import { remotely } from "../testing/remotely.js";

budgetsOnVirtualTime();

describe("waiting", () => {
  /** Notes who was admitted when, in seconds. */
  function diary(budget: ReturnType<typeof budgetOf>["budget"]) {
    const began = Date.now();
    const entries: string[] = [];
    const reserve = (who: string, subject: object, options = {}) =>
      budget.reserve({ user: "u", ...subject }, options).then(
        (r) => {
          entries.push(`${who} at ${(Date.now() - began) / 1000}`);
          return r;
        },
        (error) => {
          entries.push(`${who}: ${error.code ?? error.message}`);
          return undefined;
        },
      );
    return { entries, reserve };
  }

  it("7: a heavy call is not overtaken by light ones, of whichever user, that share its limit", async () => {
    const { budget } = budgetOf([
      { ...tpm(100), name: "org", by: ["org"] },
      { ...tpm(100), name: "user" },
    ]);
    const { entries, reserve } = diary(budget);
    await reserve("first", { org: "o", tokens: 60 });
    void reserve("heavy", { org: "o", tokens: 100 });
    for (let n = 0; n < 3; n++) void reserve(`light ${n}`, { org: "o", user: `v${n}`, tokens: 10 });
    void reserve("elsewhere", { org: "p", user: "w", tokens: 10 });
    await vi.advanceTimersByTimeAsync(59_999);
    expect(entries).toEqual(["first at 0", "elsewhere at 0"]);
    await vi.advanceTimersByTimeAsync(1);
    expect(entries).toEqual(["first at 0", "elsewhere at 0", "heavy at 60"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(entries.slice(3)).toEqual(["light 0 at 120", "light 1 at 120", "light 2 at 120"]);
  });

  it("is not held up by one who waits for a limit of his own", async () => {
    const { budget } = budgetOf([
      { ...tpm(1000), name: "org", by: ["org"] },
      { ...tpm(100), name: "user" },
    ]);
    const { entries, reserve } = diary(budget);
    await reserve("first", { org: "o", tokens: 100 });
    void reserve("same user", { org: "o", tokens: 50 });
    void reserve("other user", { org: "o", user: "v", tokens: 50 });
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "other user at 0"]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(entries[2]).toBe("same user at 60");
  });

  it("goes by priority, first come first served within one, and ages across", async () => {
    const { budget } = budgetOf([{ name: "one", unit: "requests", limit: 1, window: "1m", by: ["user"] }]);
    const { entries, reserve } = diary(budget);
    await reserve("head", {});
    void reserve("low 1", {});
    void reserve("low 2", {});
    await vi.advanceTimersByTimeAsync(5000);
    void reserve("high 1", {}, { priority: 1 });
    void reserve("high 2", {}, { priority: 1 });
    await vi.advanceTimersByTimeAsync(6000);
    void reserve("high, 11 s later", {}, { priority: 1 });
    void reserve("urgent, 11 s later", {}, { priority: 5 });
    await vi.advanceTimersByTimeAsync(400_000);
    expect(entries.map((entry) => entry.split(" at ")[0])).toEqual([
      "head",
      "urgent, 11 s later",
      "high 1",
      "high 2",
      "low 1",
      "low 2",
      "high, 11 s later",
    ]);
  });

  it("ends at once when another call gives back what it did not use", async () => {
    const { budget } = budgetOf([tpm(100), parallel(1)]);
    const { entries, reserve } = diary(budget);
    const first = await reserve("first", { tokens: 100 });
    void reserve("second", { tokens: 40 });
    await vi.advanceTimersByTimeAsync(3000);
    await first?.settle({ tokens: 60 });
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "second at 3"]);
  });

  it("for what other processes give back is at most a fifth of a second late", async () => {
    const store = memoryStore({ clock: Date.now });
    const [here, there] = [remotely(store), remotely(store)].map(
      (shared) => budgetOf([parallel(1)], { store: shared }).budget,
    );
    const { entries, reserve } = diary(here);
    const held = await there.reserve({ user: "u" });
    void reserve("waiter", {});
    await vi.advanceTimersByTimeAsync(1000);
    await held.settle();
    await vi.advanceTimersByTimeAsync(200);
    expect(entries).toEqual([expect.stringMatching(/^waiter at 1\.?[0-2]*$/)]);
  });

  it("ends by its signal, and by closing the budget", async () => {
    const { budget } = budgetOf([parallel(1)]);
    const { entries, reserve } = diary(budget);
    await reserve("first", {});
    const controller = new AbortController();
    void reserve("aborted", {}, { signal: controller.signal });
    void reserve("closed", {});
    controller.abort(new Error("the user left"));
    await vi.advanceTimersByTimeAsync(0);
    await budget.close();
    await vi.advanceTimersByTimeAsync(0);
    expect(entries).toEqual(["first at 0", "aborted: the user left", "closed: CLOSED"]);
    await expect(budget.tryReserve({ user: "u" })).rejects.toMatchObject({ code: "CLOSED" });
  });
});
