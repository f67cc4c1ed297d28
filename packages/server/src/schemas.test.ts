import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { schemaFiles } from "./schemas.js";

const files = await schemaFiles();

test.each(Object.keys(files))("schema/%s is what the code makes", (name) => {
  const shipped = readFileSync(new URL(`../schema/${name}`, import.meta.url), "utf8");
  const hint = "run `npm run build && node packages/server/scripts/schemas.mjs && npm run fix`";
  expect(JSON.parse(shipped), hint).toEqual(JSON.parse(files[name]!));
});
