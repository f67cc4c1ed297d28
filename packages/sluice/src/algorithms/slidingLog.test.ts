import { describe, expect, it } from "vitest";
import { slidingLog as slidingLogRule } from "../rule.js";
import { slidingLog } from "./slidingLog.js";

const START = 1_700_000_000_000;

/** The log of one key, and how many bytes its arrays take. */
function logOf(limit: number, window: number) {
  const params = slidingLog.prepare(slidingLogRule({ limit, window }));
  const page = slidingLog.page(params, 1);
  return {
    charge: (now: number, cost: number, at = now) => slidingLog.charge(params, page, 0, now, at, cost),
    remaining: (now: number) => slidingLog.remaining(params, page, 0, now),
    wait: (now: number, cost: number) => slidingLog.wait(params, page, 0, now, cost),
    count: (now: number, from: number, to: number) => slidingLog.count(params, page, 0, now, from, to),
    bytes: () => page.times[0].byteLength + (page.sums[0]?.byteLength ?? 0),
  };
}

describe("slidingLog's memory", () => {
  it("takes no more than 8 bytes for each request of cost 1", () => {
    const log = logOf(1000, 60_000);
    for (let n = 0; n < 1000; n++) log.charge(START + n, 1);
    expect(log.remaining(START + 1000)).toBe(0);
    expect(log.bytes()).toBeLessThanOrEqual(8 * 1024);
  });

  it("does not grow with the weight of a cost", () => {
    const [light, heavy] = [logOf(2 ** 50, 1000), logOf(2 ** 50, 1000)];
    for (let n = 0; n < 10; n++) {
      light.charge(START + n, 2);
      heavy.charge(START + n, 1_000_000_000);
    }
    expect(heavy.bytes()).toBe(light.bytes());
  });

  it("does not grow with requests of one millisecond, once one has a weight", () => {
    const log = logOf(1_000_000, 1000);
    log.charge(START, 2);
    for (let n = 0; n < 10_000; n++) log.charge(START, 1);
    expect(log.remaining(START)).toBe(1_000_000 - 10_002);
    expect(log.bytes()).toBeLessThan(200);
  });

  it("is given back after a burst", () => {
    const log = logOf(100_000, 1000);
    for (let n = 0; n < 100_000; n++) log.charge(START, 1);
    log.charge(START + 1000, 1);
    expect(log.bytes()).toBeLessThan(200);
  });
});

describe("slidingLog's time", () => {
  // An algorithm that walks the log on each hit would need 10^11 steps here, and one that spreads
  // it over the arguments of a call would overflow the stack.
  it("does not grow with the number of requests: 300,000 of them slide through", () => {
    const log = logOf(300_000, 60_000);
    for (let n = 0; n < 600_000; n++) {
      const now = START + Math.floor(n / 5);
      if (log.remaining(now) > 0) log.charge(now, 1);
      else log.wait(now, 1);
    }
    expect(log.remaining(START + 119_999)).toBe(0);
    expect(log.wait(START + 119_999, 1)).toBe(1);
  });
});

describe("slidingLog's numbers", () => {
  it("tell times apart where their low 32 bits wrap around", () => {
    const log = logOf(3, 2 ** 31 - 1);
    const wrap = 400 * 2 ** 32;
    log.charge(wrap - 1, 1);
    log.charge(wrap + 1, 1);
    expect(log.count(wrap + 5, wrap - 1, wrap - 1)).toBe(1);
    expect(log.count(wrap + 5, wrap, wrap + 5)).toBe(1);
    expect(log.remaining(wrap - 2 + 2 ** 31 - 1)).toBe(1);
    expect(log.remaining(wrap - 1 + 2 ** 31 - 1)).toBe(2);
    expect(log.remaining(wrap + 1 + 2 ** 31 - 1)).toBe(3);
  });

  it("stay exact when the costs that passed add up to more than 2^53", () => {
    const limit = 2 ** 51 + 1;
    const log = logOf(limit, 1000);
    let now = START;
    for (let n = 0; n < 64; n++) {
      log.charge(now, 2 ** 50 + 1);
      log.charge(now + 500, 2 ** 50 - 1);
      expect(log.remaining(now + 500)).toBe(1);
      expect(log.remaining(now + 1000)).toBe(limit - 2 ** 50 + 1);
      now += 1000;
    }
  });

  it("stay exact under a debt of many times the limit", () => {
    const log = logOf(10, 1000);
    log.charge(START, 1);
    log.charge(START + 1, 2 ** 52, START);
    expect(log.remaining(START + 999)).toBe(0);
    expect(log.remaining(START + 1000)).toBe(10);
  });
});
