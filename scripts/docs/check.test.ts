import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { blocksOf, countFences } from "./blocks.js";
import { type Compiled, compile, root, runBlock } from "./check.js";

const page = (...lines: string[]) => lines.join("\n");
const block = (...lines: string[]) => page("# Title", "```ts", ...lines, "```");

describe("finding blocks", () => {
  const find = (markdown: string) => blocksOf("a.md", markdown);

  test("a block's lines keep their numbers", () => {
    const [found] = find(page("text", "", "```ts", "const a = 1;", "```")).blocks;
    expect(found).toMatchObject({ line: 3, runs: true, lines: ["export {};", "", "", "const a = 1;"] });
  });

  test("a block that continues is part of the one before", () => {
    const { blocks, fences } = find(page(block("let a = 1;"), "more", block("// continues", "a += 1;")));
    expect([blocks.length, fences]).toEqual([1, 2]);
    expect(blocks[0]?.lines).toEqual([
      "export {};",
      "",
      "let a = 1;",
      "",
      "",
      "",
      "",
      "// continues",
      "a += 1;",
    ]);
  });

  test("fences in lists are found, those of other languages and inside longer fences are not", () => {
    const listed = find(page("- item", "", "  ~~~js", "  a();", "  ~~~", "```sh", "ls", "```"));
    expect(listed.blocks.map(({ lines }) => lines.at(-1))).toEqual(["a();"]);
    expect(find(page("````md", "```ts", "x", "```", "````")).blocks).toEqual([]);
  });

  test("a fence that the search misses is still counted", () => {
    expect(countFences(page("> ```ts", "> x", "> ```", "```js", "```", "```json", "```"))).toBe(2);
  });

  test.each([
    ["never closed", page("```ts", "a();")],
    ["write ts or js", page("```typescript", "```")],
    ["is not an option", page("```ts norun", "```")],
    ["needs a reason", page("```ts no-run", "```")],
    ["no block above", block("// continues")],
    ["same language", page(block("a();"), "```js", "// continues", "```")],
    ["cannot promise", page("```ts no-run cloud", "a(); // -> 1", "```")],
    ["behind an expression", block("a();", "// -> 1")],
    ["promises nothing", block("a(); // -> ...")],
  ])("refuses a page: %s", (problem, markdown) => {
    expect(() => find(markdown)).toThrow(problem);
  });
});

describe("checking blocks", () => {
  const folder = join(root, ".docs-check", "samples");
  const passing = {
    inspect: block(
      "({ a: 1, b: ['x'], c: { d: { e: { f: 1 } } } }); // -> { a: 1, b: [\"x\"], c: { d: { e: { f: 1 } } } }",
    ),
    json: block('({ a: 1, b: "x" }); // -> {"a": 1, "b": "x"}'),
    anything: block("({ a: 1, b: Math.random() }); // -> { a: 1, ... }"),
    string: block('"http://x"; // -> http://x', '"y"; // -> "y"'),
    console: block('console.log("a", 1); // -> a 1'),
    constant: block("const a: number = await Promise.resolve(4) // -> 4", "a + 1; // -> 5"),
    long: block("Array.from({ length: 9 }, (_, i) => i); // -> [0, 1, 2, 3, 4, 5, 6, 7, 8]"),
    continued: page(block("const a = 1;"), block("// continues", "a; // -> 1")),
    javascript: page("```js", "const f = (x) => x;", "f(1); // -> 1", "```"),
    compiledOnly: page("```ts no-run it would throw", 'throw new Error("not run");', "```"),
  };
  const failing: Record<string, [markdown: string, problem: string]> = {
    throws: [block("", 'throw new Error("on purpose");'), "throws.md:4"],
    broken: [block("1 + 1; // -> 3"), "broken.md:3: promised 3"],
    swallowed: [block("try {", "  1 + 1; // -> 3", "} catch {}"), "swallowed.md:4: promised 3"],
    unreached: [
      block("if (Date.now() < 0) {", "  1; // -> 1", "}"),
      "unreached.md:4: this line was never reached",
    ],
    unawaited: [block("Promise.resolve(1); // -> 1"), "unawaited.md:3: promised 1"],
    rejected: [block('Promise.reject(new Error("later"));'), "later"],
    stuck: [block("await new Promise(() => {});"), "exit code 13"],
    exits: [block("process.exit(0);", "1; // -> 1"), "exits.md:4: this line was never reached"],
    prefix: [block("12; // -> 1"), "prefix.md:3: promised 1"],
  };
  const miscompiled: Record<string, [markdown: string, problem: string]> = {
    wrongType: [block("", 'const a: number = "x";'), "wrongType.md:4:7: error TS2322"],
    unknownName: [page("```ts no-run cloud", "cloud();", "```"), "unknownName.md:2:1: error TS2304"],
  };
  const read = (name: string, markdown: string) => blocksOf(`${name}.md`, markdown).blocks[0]!;
  const samples = {
    passing: Object.entries(passing).map(([name, markdown]) => read(name, markdown)),
    failing: Object.entries(failing).map(([name, [markdown]]) => read(name, markdown)),
    miscompiled: Object.entries(miscompiled).map(([name, [markdown]]) => read(name, markdown)),
  };

  let compiled: Compiled;
  beforeAll(() => {
    compiled = compile(Object.values(samples).flat(), folder);
  });

  for (const sample of samples.passing) {
    test(`${sample.page} passes`, async () => {
      expect(compiled.errors.get(sample)).toEqual([]);
      if (sample.runs) expect(await runBlock(sample, folder)).toBeUndefined();
    });
  }

  for (const sample of samples.failing) {
    test(`${sample.page} fails when it is run`, async () => {
      expect(compiled.errors.get(sample)).toEqual([]);
      expect(await runBlock(sample, folder)).toContain(failing[sample.page.replace(".md", "")]?.[1]);
    });
  }

  for (const sample of samples.miscompiled) {
    test(`${sample.page} fails when it is compiled`, () => {
      const problem = miscompiled[sample.page.replace(".md", "")]?.[1];
      expect(compiled.errors.get(sample)?.join("\n")).toContain(problem);
    });
  }

  test("every complaint belongs to a block", () => {
    expect(compiled.otherErrors).toEqual([]);
  });

  test("a promise behind part of a statement is refused", () => {
    const part = read("part", block("console.log(", "  1,", "); // -> 1"));
    const { errors } = compile([part], join(root, ".docs-check", "part"));
    expect(errors.get(part)?.join("\n")).toContain("part.md:5:");
    expect(errors.get(part)?.join("\n")).toContain("needs a whole expression on its line");
  });
});
