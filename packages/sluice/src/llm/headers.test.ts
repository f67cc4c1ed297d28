import { describe, expect, it } from "vitest";
import { duration, pauseFor } from "./headers.js";

const NOW = Date.parse("2026-03-02T09:00:00Z");
const pause = (status: number, headers: Readonly<Record<string, string>>) =>
  pauseFor(status, (name) => ({ date: "Mon, 02 Mar 2026 09:00:00 GMT", ...headers })[name]);

describe("a time that a provider tells", () => {
  it.each([
    ["6m0s", 360_000],
    ["1h2m3.5s", 3_723_500],
    ["20ms", 20],
    ["1s500ms", 1500],
    ["750us", 0.75],
    ["7", 7000],
    ["0.25", 250],
    ["2026-03-02T09:01:30Z", 90_000],
    ["2026-03-02T10:01:30+01:00", 90_000],
    ["Mon, 02 Mar 2026 09:00:10 GMT", 10_000],
    ["2026-03-02T08:00:00Z", 0],
    ["soon", undefined],
    ["", undefined],
    [null, undefined],
  ])("%s is %s ms", (text, ms) => {
    expect(duration(text, NOW)).toBe(ms);
  });
});

describe("a refusal pauses", () => {
  it.each<[string, number, Readonly<Record<string, string>>, number | undefined]>([
    ["by retry-after-ms before all", 429, { "retry-after-ms": "1500", "retry-after": "2" }, 1500],
    ["by retry-after in seconds", 429, { "retry-after": "20", "x-ratelimit-reset-tokens": "6m0s" }, 20_000],
    ["by retry-after as a date", 429, { "retry-after": "Mon, 02 Mar 2026 09:00:30 GMT" }, 30_000],
    [
      "until what is used up is whole again",
      429,
      {
        "x-ratelimit-remaining-requests": "10",
        "x-ratelimit-reset-requests": "1h0m0s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
      },
      360_000,
    ],
    [
      "by Anthropic's date",
      429,
      {
        "anthropic-ratelimit-output-tokens-remaining": "0",
        "anthropic-ratelimit-output-tokens-reset": "2026-03-02T09:00:45Z",
      },
      45_000,
    ],
    ["for a second when nothing is told", 429, {}, 1000],
    ["when overloaded and told how long", 529, { "retry-after": "3" }, 3000],
    ["not for errors of other kinds", 500, { "x-request-id": "1" }, undefined],
    ["not when unavailable without a time", 503, {}, undefined],
  ])("%s", (_, status, headers, ms) => {
    expect(pause(status, headers)).toBe(ms);
  });
});

describe("an answer pauses", () => {
  it("not while something is left", () => {
    expect(pause(200, { "x-ratelimit-remaining-tokens": "1", "x-ratelimit-reset-tokens": "6m0s" })).toBe(
      undefined,
    );
    expect(pause(200, {})).toBe(undefined);
  });

  it("after the last one, until the next has flowed in", () => {
    const headers = { "x-ratelimit-remaining-requests": "0", "x-ratelimit-limit-requests": "500" };
    expect(pause(200, { ...headers, "x-ratelimit-reset-requests": "1m0s" })).toBe(120);
  });

  it("until the reset, where it does not say how much that brings", () => {
    const headers = { "anthropic-ratelimit-input-tokens-remaining": "0" };
    expect(pause(200, { ...headers, "anthropic-ratelimit-input-tokens-reset": "2026-03-02T09:00:05Z" })).toBe(
      5000,
    );
  });
});
