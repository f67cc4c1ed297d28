// Keeps the harness honest; times nothing. Each benchmark runs for a moment, each contender must really
// limit, and the pages in docs/ must say what the kept JSON says, figure by figure.
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { redisStore } from "sluice/redis";
import { afterEach, describe, expect, test } from "vitest";
import { runProcesses } from "../packages/sluice/test/tierProcesses.mjs";
import { frameworks } from "./contenders/http.mjs";
import * as contenders from "./contenders/memory.mjs";
import { loadNoteScripts } from "./contenders/notes.mjs";
import { bareEvalsha, bareLog, makers } from "./contenders/redis.mjs";
import { allFiles } from "./lib/pages.mjs";
import { startRedis } from "./lib/redis-server.mjs";
import { runSuite } from "./lib/run-suite.mjs";
import { WIDTH, widthOf } from "./lib/svg.mjs";
import { releaseClocks, virtualizeClocks } from "./lib/traffic.mjs";
import { suites } from "./suites/index.mjs";
import { pairsOn } from "./suites/llm.mjs";

const docs = join(import.meta.dirname, "..", "docs");

describe("each suite runs for a moment", () => {
  for (const name of Object.keys(suites)) {
    test(name, async () => {
      const { sections, targets } = await runSuite(name, { rounds: 1, roundMs: 1, scale: 0.001 });
      for (const { id, columns, rows } of sections) {
        expect(rows.length, id).toBeGreaterThan(0);
        for (const row of rows) {
          expect(Object.keys(row.cells).sort(), `${id}: ${row.label}`).toEqual(
            columns.map(({ key }) => key).sort(),
          );
        }
      }
      for (const { value, claim } of targets) expect(value, claim).toBeGreaterThan(0);
    });
  }
});

describe("each contender in memory limits", () => {
  const { floor, bottleneck, pThrottlePackage, ...refusing } = contenders;
  const setting = { keys: ["a"], limit: 5, windowMs: 60_000 };
  afterEach(releaseClocks);

  for (const [name, contender] of Object.entries(refusing)) {
    test(`${name} admits the limit while time stands, and goes on when it passes`, async () => {
      virtualizeClocks();
      const { run, close } = contender({ ...setting, demand: 1e9 });
      expect(await run(20)).toBe(5);
      await close?.();
      const slow = contender({ ...setting, demand: 0.5 });
      expect(await slow.run(20)).toBe(20);
      await slow.close?.();
    });
  }

  // The block of @nestjs/throttler's guard takes a window more from whoever was over.
  const { nestThrottler, ...fair } = refusing;
  for (const [name, contender] of Object.entries(fair)) {
    test(`${name} admits half of twice the limit, in turns with others`, async () => {
      virtualizeClocks();
      const [one, other] = [contender({ ...setting, demand: 2 }), contender({ ...setting, demand: 2 })];
      let allowed = 0;
      for (let turn = 0; turn < 20; turn++) {
        allowed += await one.run(100);
        await other.run(70);
      }
      expect(allowed / 2000).toBeGreaterThan(0.45);
      expect(allowed / 2000).toBeLessThan(0.55);
      await Promise.all([one.close?.(), other.close?.()]);
    });
  }

  for (const [name, contender] of Object.entries({ floor, bottleneck, pThrottlePackage })) {
    test(`${name} lets everything within the limit pass`, async () => {
      virtualizeClocks();
      const { run } = contender({ ...setting, demand: 0.5 });
      expect(await run(20)).toBe(20);
    });
  }
});

test("each contender on Redis admits the limit and refuses the rest", async () => {
  const server = await startRedis();
  await loadNoteScripts(server.connect());
  for (const { id, make } of [bareLog, ...makers.filter((maker) => maker !== bareEvalsha)]) {
    const decide = await make(server.connect(), { limit: 5, windowMs: 3_600_000 });
    const answers = await Promise.all(Array.from({ length: 20 }, () => decide("key")));
    expect(answers.filter(Boolean).length, id).toBe(5);
  }
  await server.stop();
});

describe("each HTTP guard limits", () => {
  for (const { title, make } of Object.values(frameworks)) {
    test(title, async () => {
      for (const [guard, maker] of Object.entries(make)) {
        const server = await maker({ limit: 5, windowMs: 60_000 });
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const { port } = server.address() as AddressInfo;
        const statuses: number[] = [];
        for (let n = 0; n < 8; n++) statuses.push((await fetch(`http://127.0.0.1:${port}/`)).status);
        const rest = guard === "sluice" || guard === "peer" ? 429 : 200;
        expect({ guard, statuses }).toEqual({ guard, statuses: [200, 200, 200, 200, 200, rest, rest, rest] });
        server.close();
        server.closeAllConnections();
      }
    });
  }
});

test("no plot cuts its words off", () => {
  const words = [...allFiles()]
    .filter(([name]) => name.endsWith(".svg"))
    .flatMap(([name, svg]) =>
      [...svg.matchAll(/<text class="([^"]*)" x="([\d.]+)" y="[\d.]+">([^<]*)</g)].map((found) => ({
        name,
        found,
      })),
    );
  expect(words.length).toBeGreaterThan(100);
  for (const { name, found } of words) {
    const [, classes = "", x, word = ""] = found;
    const width = widthOf(word.replaceAll("&quot;", "_"), classes.includes("small") ? 12 : 13);
    const left = Number(x) - (classes.includes("end") ? width : classes.includes("middle") ? width / 2 : 0);
    expect(left, `${name}: ${word}`).toBeGreaterThanOrEqual(0);
    expect(left + width, `${name}: ${word}`).toBeLessThanOrEqual(WIDTH);
  }
});

test("each call of the suite llm admits the limit and refuses the rest, on Redis", async () => {
  const server = await startRedis();
  const usage = { inputTokens: 100, outputTokens: 300 };
  for (const { id, take, reserve } of pairsOn(redisStore(server.connect()), 5, usage)) {
    for (const call of [take, reserve]) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => call("user")));
      expect(answers.filter(Boolean).length, id).toBe(5);
    }
  }
  await server.stop();
});

test("processes that share a full key admit what is free again, with leases and without", async () => {
  const server = await startRedis();
  const shared = {
    redis: { path: server.path },
    processes: 2,
    limit: 2000,
    window: 1000,
    load: 3,
    isFull: true,
  };
  for (const leases of [false, true]) {
    const { calls, failed, admitted, most } = await runProcesses({ ...shared, leases, durationMs: 1000 });
    expect({ leases, failed, isOver: most > shared.limit }).toEqual({ leases, failed: 0, isOver: false });
    expect(calls).toBeGreaterThan(5000);
    expect(admitted).toBeGreaterThan(shared.limit / 2);
    expect(admitted).toBeLessThan(calls);
  }
  await server.stop();
});

describe("the pages say what was measured", () => {
  for (const [name, contents] of allFiles()) {
    test(name, () => {
      expect(readFileSync(join(docs, name), "utf8"), "run: node bench/render.mjs").toBe(contents);
    });
  }
});
