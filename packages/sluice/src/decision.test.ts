import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import { combine } from "./decision.js";
import { createLimiter } from "./limiter.js";
import { slidingLog } from "./rule.js";

const rule = { rule: "a", allowed: true, limit: 10, remaining: 5, retryAfterMs: 0, resetAfterMs: 1, at: 1 };

describe("a decision of several rules", () => {
  it("is bound by the rule that has the least left", () => {
    expect(combine([rule, { ...rule, rule: "b", remaining: 4 }]).rule).toBe("b");
  });

  it("is bound by the rule that denies longest, whatever the others have left", () => {
    const denied = { ...rule, allowed: false, remaining: 3 };
    const rules = [
      { ...denied, rule: "b", retryAfterMs: 7 },
      { ...denied, rule: "c", retryAfterMs: 8 },
    ];
    expect(combine([{ ...rule, remaining: 0 }, ...rules])).toMatchObject({ rule: "c", retryAfterMs: 8 });
  });
});

describe("decisions", () => {
  it("have one shape, whatever numbers they hold: another would make each one slow that is made as before", () => {
    setFlagsFromString("--allow-natives-syntax");
    const haveSameShape = new Function("a", "b", "return %HaveSameMap(a, b)");
    const limiter = createLimiter({ rules: slidingLog({ limit: 1, window: 1000 }) });
    const [admitted, refused] = [limiter.tryAcquireSync("a"), limiter.tryAcquireSync("a")];
    const never = limiter.tryAcquireSync("a", 2);
    expect([admitted.retryAfterMs, never.retryAfterMs]).toEqual([0, Infinity]);
    for (const other of [refused, never]) {
      expect(haveSameShape(admitted, other)).toBe(true);
      expect(haveSameShape(admitted.rules[0], other.rules[0])).toBe(true);
    }
  });
});
