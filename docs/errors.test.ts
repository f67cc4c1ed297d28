import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");

test("every error code has a heading in errors.md, and every heading a code", () => {
  const [union] = /(?<=type SluiceErrorCode =)[^;]+/.exec(read("../packages/sluice/src/errors.ts")) ?? [""];
  const codes = [...union.matchAll(/"(\w+)"/g)].map(([, code]) => code);
  const headings = [...read("errors.md").matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  expect(codes.length).toBeGreaterThan(0);
  expect(headings.sort()).toEqual(codes.sort());
});
