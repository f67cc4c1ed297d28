import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const library = new URL("../../dist/", import.meta.url);

describe("the conformance suite", () => {
  it("runs under node:test as it does here", () => {
    const suite = `
      import { describe, it } from "node:test";
      import { memoryStore } from "${library}index.js";
      import { conformance } from "${library}testing/index.js";
      conformance({ name: "memoryStore", describe, it, createStore: memoryStore, decisions: 100 });
    `;
    const { stdout, status } = spawnSync(
      process.execPath,
      ["--test-reporter=tap", "--input-type=module", "--eval", suite],
      { encoding: "utf8" },
    );
    expect(stdout).toMatch(/^# pass \d{3}$/m);
    expect(stdout).toMatch(/^# fail 0$/m);
    expect(status).toBe(0);
  });
});
