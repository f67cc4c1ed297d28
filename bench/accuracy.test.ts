// A short look at the lab: the exact ones are exact, the others err where they must, and all of them limit.
import { beforeAll, expect, test } from "vitest";
import { Judge } from "./accuracy/judge.mjs";
import { runLab } from "./accuracy/lab.mjs";

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

test("every limiter admits and refuses", () => {
  for (const id of new Set(lab.outcomes.map(({ candidate }) => candidate.id))) {
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
