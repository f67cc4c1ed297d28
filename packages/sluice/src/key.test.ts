import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Key, keyFor } from "./key.js";
import { slidingLog } from "./rule.js";

const whole = slidingLog({ limit: 1, window: 1000 });
const byUser = slidingLog({ limit: 1, window: 1000, by: ["user"] });

describe("a key", () => {
  it("that is a string is taken as it is", () => {
    expect(keyFor(whole, "login:user:42")).toBe("login:user:42");
  });

  it("of parts does not depend on their order, nor on whether a number is written as one", () => {
    expect(keyFor(whole, { a: "1", b: 2 })).toBe(keyFor(whole, { b: "2", a: 1 }));
  });

  it("is counted by the parts that the rule names, and by no others", () => {
    expect(keyFor(byUser, { user: "1", ip: "x" })).toBe(keyFor(byUser, { user: "1", ip: "y" }));
    expect(keyFor(byUser, { user: "1", ip: "x" })).not.toBe(keyFor(byUser, { user: "2", ip: "x" }));
  });

  it("joins no parts into the text of others: (a_b, c) is not (a, b_c)", () => {
    const texts = [
      { a_b: "c" },
      { a: "b_c" },
      { a: "b", c: "d" },
      { a: "b&c=d" },
      { "a=b&c": "d" },
      { a: "b%26c=d" },
      { a: "b%2526c=d" },
    ].map((key) => keyFor(whole, key as Key));
    expect(new Set(texts).size).toBe(texts.length);
  });

  it("shares its text with another only when all parts agree", () => {
    const text = fc.string({
      minLength: 1,
      maxLength: 4,
      unit: fc.constantFrom("a", "=", "&", "%", "2", "6"),
    });
    const record = fc.dictionary(text, text, { minKeys: 1, maxKeys: 3, noNullPrototype: true });
    fc.assert(
      fc.property(record, record, (one, other) => {
        const isSame =
          JSON.stringify(Object.entries(one).sort()) === JSON.stringify(Object.entries(other).sort());
        expect(keyFor(whole, one) === keyFor(whole, other)).toBe(isSame);
      }),
      { numRuns: 5000 },
    );
  });

  it("lists parts that the rule counts by in the rule's order, so that their values cannot be swapped", () => {
    const rule = slidingLog({ limit: 1, window: 1000, by: ["user", "ip"] });
    expect(keyFor(rule, { user: "1", ip: "2" })).not.toBe(keyFor(rule, { user: "2", ip: "1" }));
  });

  it("may have 16,384 characters and no more", () => {
    expect(keyFor(whole, "x".repeat(16_384))).toHaveLength(16_384);
    expect(() => keyFor(whole, "x".repeat(16_385))).toThrow("1 to 16384 characters; got 16385");
  });

  it.each([
    [whole, "", "A key must have 1 to 16384 characters; got 0."],
    [whole, {}, "A key must have 1 to 16384 characters; got 0."],
    [whole, 42, 'must be a string or an object of parts, such as { user: "42" }; got 42'],
    [whole, null, "got null"],
    [whole, ["user"], "got an array"],
    [whole, { user: true }, 'Rule "1s" counts by "user"'],
    [byUser, "42", 'Rule "1s user" counts by user, so its key must be an object with these; got "42".'],
    [byUser, { ip: "x" }, "must be a non-empty string or a number; got undefined"],
    [byUser, { user: "" }, 'got ""'],
    [byUser, { user: Infinity }, "got Infinity"],
    [byUser, Object.create({ user: "inherited" }), "got undefined"],
  ])("counted by %o refuses %j", (rule, key, message) => {
    expect(() => keyFor(rule, key as Key)).toThrow(expect.objectContaining({ code: "INVALID_KEY" }));
    expect(() => keyFor(rule, key as Key)).toThrow(message);
  });

  it("shows no more of a bad key than a reader needs", () => {
    expect(() => keyFor(byUser, "secret".repeat(50))).toThrow(/got ".{41}"\.$/);
  });
});
