// Every code block of README.md, CONTRIBUTING.md and docs/**/*.md is type-checked and executed.
//
// ```ts or ```js              an ES module of its own; "sluice" is the built package; await works everywhere
// // continues                as a block's first line: it goes on where the page's previous block ended
// ```ts no-run <reason>       compiled only
// expression; // -> value     the expression prints as the value. Also behind `console.log(...)` (what is
//                             printed) and `const name = ...` (the constant). It prints as util.inspect on
//                             one line or as JSON, a string also bare; quotes and spacing do not matter, and
//                             `...` stands for anything. The line must be reached, and be a whole statement.
// process.env.REDIS_URL       an empty Redis of the block's own, started for blocks that name it
// process.env.REDIS_CLUSTER_URL  one node of an empty cluster of three masters, likewise
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { startCluster } from "../packages/sluice/test/redisCluster.js";
import { startRedis } from "../packages/sluice/test/redisServer.js";
import { type Block, blocksOf, countFences } from "../scripts/docs/blocks.js";
import { type Compiled, compile, root, runBlock } from "../scripts/docs/check.js";

const folder = join(root, ".docs-check", "docs");
const docs = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" });
const pages = ["README.md", "CONTRIBUTING.md", ...docs.map((path) => `docs/${path.replaceAll("\\", "/")}`)]
  .filter((path) => path.endsWith(".md") && existsSync(join(root, path)))
  .map((path) => {
    const markdown = readFileSync(join(root, path), "utf8");
    return { path, markdown, ...blocksOf(path, markdown) };
  });
const blocks = pages.flatMap((page) => page.blocks);

let compiled: Compiled = { errors: new Map(), otherErrors: [] };
beforeAll(() => {
  if (blocks.length > 0) compiled = compile(blocks, folder);
});

test("every fence that claims to be code is among the blocks", () => {
  const found = pages.map(({ path, fences }) => `${path}: ${fences}`);
  expect(found).toEqual(pages.map(({ path, markdown }) => `${path}: ${countFences(markdown)}`));
});

test("the compiler complains of nothing outside the blocks", () => {
  expect(compiled.otherErrors).toEqual([]);
});

for (const block of blocks) {
  test(`${block.page}:${block.line}`, async () => {
    expect(compiled.errors.get(block)?.join("\n")).toBe("");
    if (!block.runs) return;
    const { variables, stop } = await serversFor(block);
    const problem = await runBlock(block, folder, variables);
    await stop();
    if (problem !== undefined) expect.fail(problem);
  });
}

/** The servers that a block asks for by naming their variable. */
async function serversFor(
  block: Block,
): Promise<{ variables: Record<string, string>; stop(): Promise<void> }> {
  const names = (variable: string) => block.lines.some((line) => line.includes(`process.env.${variable}`));
  const single = names("REDIS_URL") ? await startRedis() : undefined;
  const cluster = names("REDIS_CLUSTER_URL") ? await startCluster() : undefined;
  return {
    variables: {
      ...(single && { REDIS_URL: `redis://127.0.0.1:${single.port}` }),
      ...(cluster && { REDIS_CLUSTER_URL: `redis://127.0.0.1:${cluster.ports[0]}` }),
    },
    async stop() {
      await single?.stop();
      await cluster?.stop();
    },
  };
}
