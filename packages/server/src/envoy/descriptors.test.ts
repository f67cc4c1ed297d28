import { describe, expect, test } from "vitest";
import { parseConfiguration } from "../config/load.js";
import { descriptor } from "../testing/testServer.js";
import { DescriptorTree, keyOfEntries } from "./descriptors.js";
import { wildcard } from "./wildcard.js";

function treeOf(descriptors: string): DescriptorTree {
  const [domain] = parseConfiguration([
    { name: "x", text: `domain: x\ndescriptors:\n${descriptors}` },
  ]).domains;
  return new DescriptorTree("x", domain!.nodes);
}

const tree = treeOf(`
  - { key: database, value: users, rate_limit: { unit: second, requests_per_unit: 500, name: exact } }
  - { key: database, value: "us*", rate_limit: { unit: second, requests_per_unit: 40, name: "us*" } }
  - { key: database, value: "u*s", rate_limit: { unit: second, requests_per_unit: 30, name: "u*s" } }
  - { key: database, rate_limit: { unit: second, requests_per_unit: 20, name: bare } }
  - key: path
    value: /login
    descriptors:
      - { key: ip, rate_limit: { unit: minute, requests_per_unit: 3, name: login by ip } }
  - key: path
    descriptors:
      - { key: user, rate_limit: { unit: minute, requests_per_unit: 9, name: any path by user } }
  - { key: free }
  - key: both
    rate_limit: { unit: minute, requests_per_unit: 1, name: outer }
    descriptors:
      - { key: inner, rate_limit: { unit: minute, requests_per_unit: 1, name: inner } }
`);

test.each([
  ["the exact key and value go first", { database: "users" }, "exact"],
  ["then wildcards, in the order of the file", { database: "usages" }, "us*"],
  ["a wildcard may stand anywhere", { database: "uniques" }, "u*s"],
  ["then the key alone", { database: "orders" }, "bare"],
  ["an empty value is any other value", { database: "" }, "bare"],
  ["a nested descriptor needs all its levels", { path: "/login", ip: "10.0.0.1" }, "login by ip"],
  ["a value that is not listed falls under the key alone", { path: "/home", user: "7" }, "any path by user"],
  [
    "the first match decides: there is no way back to the key alone",
    { path: "/login", user: "7" },
    undefined,
  ],
  ["fewer entries than levels match nothing", { path: "/login" }, undefined],
  ["more entries than levels match nothing", { database: "users", extra: "1" }, undefined],
  ["a limit halfway is for requests of that depth", { both: "1" }, "outer"],
  ["and one below it for deeper ones", { both: "1", inner: "2" }, "inner"],
  ["an unknown key matches nothing", { nothing: "1" }, undefined],
  ["a node with neither limit nor children limits nothing", { free: "1" }, undefined],
])("%s", (_what, entries, name) => {
  expect(tree.match(descriptor(entries as Record<string, string>).entries)?.limit.limit.name).toBe(name);
});

test("no entries match nothing", () => {
  expect(tree.match([])).toBeUndefined();
});

describe("keys", () => {
  test("differ where entries differ, however they would read when joined", () => {
    const lists = [
      [["a_b", "c"]],
      [["a", "b_c"]],
      [
        ["a", "b"],
        ["c", "d"],
      ],
      [["a", "b&c=d"]],
      [["a=b", "c"]],
      [["a", "b=c"]],
      [["a", "b%26c"]],
      [["a", "b&c"]],
      [
        ["a", ""],
        ["b", ""],
      ],
      [
        ["b", ""],
        ["a", ""],
      ],
    ];
    const keys = lists.map((list) =>
      keyOfEntries(list.map(([key, value]) => ({ key: key!, value: value! }))),
    );
    expect(new Set(keys).size).toBe(lists.length);
  });

  test("are apart for each value of a wildcard, and one where they share", () => {
    const apart = treeOf(`  - { key: a, value: "x*", rate_limit: { unit: minute, requests_per_unit: 1 } }`);
    const shared = treeOf(
      `  - { key: a, value: "x*", share_threshold: true, rate_limit: { unit: minute, requests_per_unit: 1 } }`,
    );
    const key = (tree: DescriptorTree, value: string) => tree.match([{ key: "a", value }])?.key;
    expect(key(apart, "x1")).not.toBe(key(apart, "x2"));
    expect(key(shared, "x1")).toBe(key(shared, "x2"));
  });

  test("live at the same place after a reload that leaves the rule where it was", () => {
    const path = (text: string) => treeOf(text).match([{ key: "a", value: "1" }])?.limit.rule?.path;
    const before = path("  - { key: a, rate_limit: { unit: minute, requests_per_unit: 1 } }");
    const after = path("  - { key: b }\n  - { key: a, rate_limit: { unit: minute, requests_per_unit: 9 } }");
    expect(before).toBe(after);
  });
});

test.each([
  ["a*c", "abc", true],
  ["a*c", "ac", true],
  ["a*c", "acb", false],
  ["*", "", true],
  ["*a*", "bab", true],
  ["a*a", "a", false],
  ["*ab*ab*", "abab", true],
  ["*ab*ab*", "aba", false],
  ["a**b", "ab", true],
  [".*", "x", false],
])("%s matches %s: %s", (pattern, text, expected) => {
  expect(wildcard(pattern)(text)).toBe(expected);
});

test("a wildcard is matched in linear time", () => {
  const started = performance.now();
  expect(wildcard(`${"*a".repeat(100)}b`)("a".repeat(100_000))).toBe(false);
  expect(performance.now() - started).toBeLessThan(1000);
});
