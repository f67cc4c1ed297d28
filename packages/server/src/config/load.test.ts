import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EXAMPLES } from "./defaults.js";
import { loadConfiguration, parseConfiguration } from "./load.js";
import { ConfigError, type Problem } from "./problem.js";

function problemsOf(...texts: string[]): readonly Problem[] {
  try {
    parseConfiguration(texts.map((text, t) => ({ name: `${t}.yaml`, text })));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const places = (problems: readonly Problem[]) => problems.map(({ line, column }) => `${line}:${column}`);

test("the examples that are shipped are right", () => {
  const { limiters, domains } = loadConfiguration([EXAMPLES]);
  expect(limiters.map(({ name }) => name)).toEqual(["api", "login", "tokens"]);
  expect(domains.map(({ domain }) => domain)).toEqual(["demo"]);
});

describe("a limits file", () => {
  test("has the exact log where no algorithm is told", () => {
    const [limiter] = parseConfiguration([
      { name: "a", text: "limiters: { api: { rules: [{ limit: 5, window: 1m }] } }" },
    ]).limiters;
    expect(limiter?.rules).toMatchObject([{ algorithm: "slidingLog", limit: 5, window: 60_000 }]);
  });

  test("tells all that is wrong with it at once, each with its place, its text and what is allowed", () => {
    const problems = problemsOf(`limiters:
  api:
    ruels: []
    rules:
      - limit: ten
        window: 1 minute
      - { limit: 5, window: 1s, algorithm: tokenBuckt }
      - { limit: 5, window: 1s, cells: 4 }
    outage: { polcy: open }
    key: "{ipp}"
  "bad name!":
    rules: [{ limit: 1, window: 1s }]
`);
    expect(places(problems)).toEqual(["3:5", "5:16", "6:17", "7:44", "8:9", "9:15", "10:10", "11:3"]);
    expect(problems[0]).toMatchObject({
      message: expect.stringContaining(
        'limiters.api.ruels is not known here (did you mean "rules"?); allowed: ',
      ),
      excerpt: "  3 |     ruels: []\n    |     ^^^^^",
    });
    expect(problems[1]?.message).toBe(
      'limiters.api.rules[0].limit must be a whole number of at least 1; got "ten"',
    );
    expect(problems[1]?.excerpt).toContain("      - limit: ten\n    |                ^^^");
    expect(problems[3]?.message).toContain("must be one of slidingLog, slidingCells,");
    expect(problems[4]?.message).toContain('slidingLog has no option "cells"');
    expect(problems[6]?.message).toContain("allowed are {ip}, {method}, {path}, {host} and {header:NAME}");
  });

  test.each([
    [
      "two rules of one name",
      "limiters: { a: { rules: [{ limit: 1, window: 1s }, { limit: 2, window: 1s }] } }",
      "second rule named",
    ],
    [
      "a rule that counts by what the key has not",
      "limiters: { a: { key: '{ip}', rules: [{ limit: 1, window: 1s, by: [user] }] } }",
      "counts by user",
    ],
    [
      "a key that every request shares",
      "limiters: { a: { key: all, rules: [{ limit: 1, window: 1s }] } }",
      "all requests would count as one",
    ],
    [
      "a key of two values with nothing between",
      "limiters: { a: { key: '{ip}{path}', rules: [{ limit: 1, window: 1s }] } }",
      "nothing between them",
    ],
    ["a rule without a window", "limiters: { a: { rules: [{ limit: 1 }] } }", "slidingLog's window must be"],
    [
      "slots without a lease",
      "limiters: { a: { rules: [{ limit: 1, algorithm: concurrent }] } }",
      "concurrent's lease must be",
    ],
    ["a token without a source", "tokens: [{ name: ci }]", "exactly one of env, file and sha256"],
    [
      "a name that stands twice",
      "limiters: { a: { rules: [{ limit: 1, window: 1s }] }, a: { rules: [] } }",
      "Map keys must be unique",
    ],
    ["what is no YAML", "limiters: [", "Flow sequence"],
    ["no mapping", "- 1", "the file must be a mapping"],
    [
      "a limit that does not count exactly",
      "limiters: { a: { rules: [{ limit: 9007199254740991, window: 1d, algorithm: tokenBucket }] } }",
      "too large to count exactly",
    ],
    [
      "aliases that multiply",
      `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nlimiters: [*c,*c,*c]`,
      "Excessive alias count",
    ],
  ])("refuses %s", (_what, text, message) => {
    expect(problemsOf(text).map((problem) => problem.message)).toEqual([expect.stringContaining(message)]);
  });

  test("is refused where another file has the same limiter, domain or setting", () => {
    const limits = "headers: legacy\nlimiters: { a: { rules: [{ limit: 1, window: 1s }] } }";
    const messages = problemsOf(limits, limits, "domain: x", "domain: x").map(
      ({ file, message }) => `${file} ${message}`,
    );
    expect(messages).toEqual([
      "1.yaml headers is set in another file already",
      "1.yaml limiters.a is a duplicate: it stands in 0.yaml already",
      "3.yaml domain is a duplicate: it stands in 2.yaml already",
    ]);
  });

  test("shows no password of a URL", () => {
    const [problem] = problemsOf('redis: { url: "https://:hunter2@cache:6379" }');
    expect(problem?.message).toContain('got "https://…@cache:6379"');
    expect(new ConfigError([problem!]).summary).not.toContain("hunter2");
  });

  test("that cannot be read is a problem like another", () => {
    expect(() => loadConfiguration(["/nowhere/limits.yaml"])).toThrow(ConfigError);
  });
});

describe("a file of envoyproxy/ratelimit", () => {
  test("tells all that is wrong with it at once", () => {
    const problems = problemsOf(`domain: x
descriptors:
  - key: a
    value: b
    rate_limit: { unit: minute, requests_per_unit: 5, unlimited: true }
  - key: a
    value: b
    rate_limt: {}
  - key: c
    rate_limit: { unit: fortnight, requests_per_unit: 5, name: q, replaces: [{ name: q }, { name: "" }] }
  - key: d
  - key: d
    share_threshold: true
`);
    expect(problems.map(({ line, message }) => `${line} ${message}`)).toEqual([
      "5 descriptors[0].rate_limit.unit must not stand beside unlimited: true; leave one of them out",
      "7 descriptors[1].value is a duplicate of (a: b)",
      expect.stringContaining('8 descriptors[1].rate_limt is not known here (did you mean "rate_limit"?)'),
      expect.stringContaining("10 descriptors[2].rate_limit.unit must be one of second, minute, hour"),
      expect.stringContaining("10 descriptors[2].rate_limit.replaces[0].name is this limit's own name"),
      expect.stringContaining(
        "10 descriptors[2].rate_limit.replaces[1].name must be the name of another limit",
      ),
      "12 descriptors[4].key is a duplicate of (d)",
      expect.stringContaining("13 descriptors[4].share_threshold needs a value with a wildcard"),
    ]);
  });

  test("chooses the algorithm for all limits, or for one", () => {
    const [domain] = parseConfiguration([
      {
        name: "a",
        text: `
domain: x
algorithm: slidingCells
descriptors:
  - { key: a, rate_limit: { unit: MINUTE, requests_per_unit: 5, cells: 10 } }
  - { key: b, rate_limit: { unit: hour, requests_per_unit: 5, algorithm: tokenBucket, burst: 2 } }`,
      },
    ]).domains;
    expect(domain?.nodes.map(({ limit }) => limit?.rule)).toMatchObject([
      { algorithm: "slidingCells", window: 60_000, cells: 10 },
      { algorithm: "tokenBucket", window: 3_600_000, burst: 2 },
    ]);
  });
});

describe("whatever a file holds", () => {
  const yaml = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc
      .array(
        fc.constantFrom(
          "limiters",
          "domain",
          ":",
          " ",
          "\n",
          "  ",
          "- ",
          "{",
          "}",
          "[",
          "]",
          "*a",
          "&a",
          "!!x",
          "|",
          '"',
          "rules",
          "limit",
          "5",
          "1m",
          "descriptors",
          "key",
          "<<",
          "#",
          "~",
          "\t",
        ),
        { maxLength: 60 },
      )
      .map((parts) => parts.join("")),
    fc.json({ maxDepth: 4 }),
    fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify({ limiters: { a: value }, listen: value })),
    fc
      .jsonValue({ maxDepth: 3 })
      .map((value) => JSON.stringify({ domain: "x", descriptors: [value, { key: "a", rate_limit: value }] })),
  );

  test("it is a configuration or a clear error, never a crash", () => {
    fc.assert(
      fc.property(yaml, (text) => {
        for (const problem of problemsOf(text)) {
          expect(problem.message).not.toBe("");
          expect(problem.message).not.toMatch(/undefined|\[object|TypeError/);
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("one changed character in a good file never crashes", () => {
    const good =
      "limiters:\n  api:\n    rules:\n      - { limit: 100, window: 1m, algorithm: slidingLog }\n    key: '{ip}'\n";
    fc.assert(
      fc.property(fc.nat(good.length), fc.string({ maxLength: 3 }), fc.nat(5), (at, inserted, cut) => {
        problemsOf(good.slice(0, at) + inserted + good.slice(at + cut));
      }),
      { numRuns: 1000 },
    );
  });

  test("nesting without end is refused", () => {
    expect(problemsOf("[".repeat(50_000))).not.toEqual([]);
    expect(problemsOf(`limiters: ${"{a: ".repeat(20_000)}`)).not.toEqual([]);
    let deep = "";
    for (let level = 0; level < 40; level++)
      deep += `${" ".repeat(level * 2)}descriptors:\n${" ".repeat(level * 2)}- key: a\n`;
    expect(problemsOf(`domain: x\n${deep}`)[0]?.message).toContain("nested more than 16 levels deep");
  });
});
