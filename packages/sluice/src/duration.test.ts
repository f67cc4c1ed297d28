import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { milliseconds, shortest } from "./duration.js";
import { SluiceError } from "./errors.js";

describe("milliseconds", () => {
  it.each([
    ["250ms", 250],
    ["1s", 1000],
    ["1m", 60_000],
    ["1h", 3_600_000],
    ["1d", 86_400_000],
    ["3660d", 3660 * 86_400_000],
    [1, 1],
    [1500, 1500],
  ])("reads %j as %d", (duration, ms) => {
    expect(milliseconds("window", duration)).toBe(ms);
  });

  it.each([
    0,
    -1,
    1.5,
    Number.NaN,
    Infinity,
    2 ** 53,
    3660 * 86_400_000 + 1,
    "",
    "0s",
    "3661d",
    "1.5s",
    "-1s",
    "1 s",
    "1S",
    "1w",
    "s",
    "1e3ms",
    "1s1s",
    `${"9".repeat(400)}d`,
    "1000",
    null,
    undefined,
    {},
    [1000],
    1000n,
  ])("refuses %s, saying what is allowed", (duration) => {
    const reading = () => milliseconds("slidingLog's window", duration);
    expect(reading).toThrow(SluiceError);
    expect(reading).toThrow(/^slidingLog's window must be "250ms".*from 1 ms to 3660 days; got /);
  });
});

describe("shortest", () => {
  it.each([
    [60_000, "1m"],
    [90_000, "90s"],
    [86_400_000, "1d"],
    [1, "1ms"],
  ])("writes %d as %s", (ms, text) => {
    expect(shortest(ms)).toBe(text);
  });

  it("is read back as the same duration", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3660 * 86_400_000 }), (ms) => {
        expect(milliseconds("window", shortest(ms))).toBe(ms);
      }),
    );
  });
});
