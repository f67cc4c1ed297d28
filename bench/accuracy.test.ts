// A short look at the lab: the exact ones are exact, the others err where they must, and all of them limit.
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { candidates } from "./accuracy/candidates.mjs";
import { Judge } from "./accuracy/judge.mjs";
import { runLab } from "./accuracy/lab.mjs";
import { play } from "./accuracy/play.mjs";
import { scenarios } from "./accuracy/scenarios.mjs";
import { startRedis } from "./lib/redis-server.mjs";
import { VirtualTimers } from "./lib/timers.mjs";
import { releaseClocks, START, virtualizeClocks } from "./lib/traffic.mjs";

afterEach(releaseClocks);

let lab: Awaited<ReturnType<typeof runLab>>;
beforeAll(async () => {
  lab = await runLab({ scale: 0.02 });
}, 60_000);

function outcomesOf(id: string) {
  return lab.outcomes.filter(({ candidate }) => candidate.id === id).map(({ judgement }) => judgement);
}

test("the judge finds one call too many, and one refused too early", () => {
  const judge = new Judge({ limit: 2, windowMs: 1000 });
  for (const [at, allowed] of [
    [0, true],
    [0, true],
    [999, true],
    [1000, false],
  ] as const)
    judge.record("key", at, 1, allowed);
  expect(judge.judgement).toMatchObject({
    mostInWindow: 3,
    wronglyAllowed: 1,
    wronglyRefused: 1,
    admitted: 3,
  });
});

test("the judge counts each free place once, and a lock-out for as long as there is one", () => {
  const judge = new Judge({ limit: 2, windowMs: 1000 });
  judge.record("key", 0, 1, true);
  for (const at of [0, 300, 600]) judge.record("key", at, 1, false);
  expect(judge.judgement).toMatchObject({ wronglyRefused: 1, worstLockOutMs: 600 });
});

test("every limiter admits and refuses", () => {
  const ids = new Set(lab.outcomes.map(({ candidate }) => candidate.id));
  for (const id of [...ids].filter((id) => !id.endsWith("apart"))) {
    const outcomes = outcomesOf(id);
    expect(Math.min(...outcomes.map(({ admitted }) => admitted)), id).toBeGreaterThan(0);
    expect(
      outcomes.some(({ decisions, admitted }) => admitted < decisions),
      id,
    ).toBe(true);
  }
});

test("the exact log never errs", () => {
  for (const outcome of outcomesOf("slidingLog")) {
    expect(outcome).toMatchObject({ wronglyAllowed: 0, wronglyRefused: 0, worstLockOutMs: 0 });
  }
});

test("strict cells are never over", () => {
  expect(
    Math.max(...outcomesOf("slidingCells, strict").map(({ mostInWindow }) => mostInWindow)),
  ).toBeLessThanOrEqual(100);
});

test("a fixed window and a two-window counter are over, for those who know where windows begin", () => {
  for (const id of ["fixedWindow", "slidingCounter", "upstash slidingWindow", "express-rate-limit"]) {
    expect(Math.max(...outcomesOf(id).map(({ mostInWindow }) => mostInWindow)), id).toBeGreaterThan(190);
  }
});

describe("on several nodes whose clocks differ", () => {
  const onNodes = (id: string) =>
    lab.outcomes.find(({ candidate, scenario }) => candidate.id === id && scenario.id === "nodes")?.judgement;

  test("the exact log on Redis never errs", () => {
    expect(onNodes("redis slidingLog")).toMatchObject({
      mostInWindow: 100,
      wronglyAllowed: 0,
      wronglyRefused: 0,
    });
  });

  test("a sorted set that goes by its clients' clocks does", () => {
    expect(onNodes("notes-sorted-set")?.wronglyAllowed).toBeGreaterThan(0);
  });

  test("what counts in each process goes over, whoever made it", () => {
    for (const id of ["slidingLog apart", "limiter apart"])
      expect(onNodes(id)?.mostInWindow).toBeGreaterThan(150);
  });
});

test("on one node, limiters whose windows are a TTL of Redis decide as they do in memory", async () => {
  const server = await startRedis();
  virtualizeClocks();
  const connections = [server.connect()];
  const bursts = scenarios(0.1).find(({ id }) => id === "on-off")!;
  const judged = (id: string) =>
    play(candidates.find((candidate) => candidate.id === id)!, bursts, connections);
  for (const [onRedis, inMemory] of [
    ["redis rate-limiter-flexible", "rate-limiter-flexible"],
    ["redis rate-limit-redis", "express-rate-limit"],
    ["redis fastify-rate-limit", "fastify-rate-limit"],
  ] as const)
    expect(await judged(onRedis), onRedis).toEqual(await judged(inMemory));
  await server.stop();
});

describe("those that wait", () => {
  const queue = (id: string) =>
    lab.sections.find(({ id }) => id === "accuracy-queues")?.rows.find((row) => row.id === id)?.cells;

  test("the exact log lets each call begin when the ideal queue does", () => {
    expect(queue("acquire slidingLog")).toMatchObject({ most: 1, early: 0, late: 0 });
  });

  test("a window from the first call is over, and even spacing is late", () => {
    expect(queue("p-throttle")?.most).toBeGreaterThan(1.9);
    expect(queue("bottleneck, reservoir")?.most).toBeGreaterThan(1.2);
    expect(queue("p-throttle, strict")).toMatchObject({ most: 1, early: 0 });
    expect(queue("bottleneck, minTime")?.late).toBeGreaterThan(50);
  });
});

test("virtual timers fire in the order of time, again and again, and not once cleared", async () => {
  virtualizeClocks();
  const timers = new VirtualTimers(START);
  const fired: string[] = [];
  const note = (name: string) => () => fired.push(`${name} ${Date.now() - START}`);
  setTimeout(note("late"), 30);
  const every = setInterval(note("every"), 10);
  clearTimeout(setTimeout(note("never"), 5));
  setTimeout(() => Promise.resolve().then(() => setTimeout(note("then"), 0)), 10);
  await timers.passUntil(START + 25);
  clearInterval(every);
  await timers.passUntil(START + 100);
  timers.release();
  expect(fired).toEqual(["every 10", "then 11", "every 20", "late 30"]);
});
