import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadConfiguration } from "./config/load.js";
import { serverProcess } from "./testing/serverProcess.js";
import { askJson, type TestServer, testServer } from "./testing/testServer.js";

const limits = (api: number, more = "") =>
  `limiters:\n  api: { rules: [{ limit: ${api}, window: 1h }] }\n${more}`;

function limitsFile(text: string) {
  const folder = mkdtempSync(join(tmpdir(), "sluice-reload-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "limits.yaml");
  writeFileSync(path, text);
  return path;
}

async function serverOf(path: string): Promise<TestServer> {
  return testServer([], { configuration: loadConfiguration([path]), paths: [path] });
}

const remaining = async ({ ask }: TestServer, limiter = "api") =>
  ((await ask(`/v1/limiters/${limiter}/acquire`, { key: "a" })).body as { remaining: number }).remaining;

test("counts survive a reload, with the limits' new numbers", async () => {
  const path = limitsFile(limits(10));
  const server = await serverOf(path);
  expect(await remaining(server)).toBe(9);
  writeFileSync(path, limits(20, "  other: { rules: [{ limit: 5, window: 1m }] }\n"));
  server.reload();
  expect(await remaining(server)).toBe(18);
  expect(await remaining(server, "other")).toBe(4);
});

test("a bad file keeps the old limits, and says so in /readyz and a metric; a good one ends that", async () => {
  const path = limitsFile(limits(10));
  const server = await serverOf(path);
  writeFileSync(path, "limiters:\n  api: { rules: [{ limit: ten, window: 1h }] }\n");
  server.reload();
  expect(await remaining(server)).toBe(9);
  expect((await server.ask("/readyz")).body).toMatchObject({
    status: "ready",
    configuration: {
      valid: false,
      detail: expect.stringContaining(`${path}:2:27: limiters.api.rules[0].limit must be`),
    },
  });
  const metrics = await (await fetch(`${server.base}/metrics`)).text();
  expect(metrics).toContain("sluice_config_valid 0");
  expect(metrics).toContain('sluice_reloads_total{result="refused"} 1');
  writeFileSync(path, limits(5));
  server.reload();
  expect((await server.ask("/readyz")).body).toMatchObject({ configuration: { valid: true } });
  expect(await remaining(server)).toBe(3);
});

test("a file that is gone keeps the old limits", async () => {
  const path = limitsFile(limits(10));
  const server = await serverOf(path);
  rmSync(path);
  server.reload();
  expect(await remaining(server)).toBe(9);
  expect((await server.ask("/readyz")).body).toMatchObject({ configuration: { valid: false } });
});

test("a process reloads on SIGHUP and when the file is written or replaced, and logs what it did", async () => {
  const path = limitsFile(limits(10));
  const server = await serverProcess("-c", path);
  const left = async () =>
    (await askJson(`${server.base}/v1/limiters/api/acquire`, { key: "a" })).body as { remaining: number };
  server.child.kill("SIGHUP");
  await server.logged('"cause":"signal"');
  expect(await left()).toMatchObject({ remaining: 9 });
  writeFileSync(path, limits(20));
  await server.logged('"cause":"change"');
  expect(await left()).toMatchObject({ remaining: 18 });
  writeFileSync(`${path}.new`, "limiters: {");
  renameSync(`${path}.new`, path);
  await server.logged("the new limits were refused");
  expect(await left()).toMatchObject({ remaining: 17 });
  expect(await server.end("SIGTERM")).toBe(0);
});

test("reloads under load lose no decision and no count", async () => {
  const path = limitsFile(limits(1_000_000));
  const server = await serverOf(path);
  let sent = 0;
  let isOver = false;
  const clients = Array.from({ length: 16 }, async () => {
    while (!isOver) {
      sent++;
      const { status, body } = await server.ask("/v1/limiters/api/acquire", { key: "a" });
      expect([status, (body as { allowed: boolean }).allowed]).toEqual([200, true]);
    }
  });
  for (let n = 0; n < 30; n++) {
    writeFileSync(
      path,
      n % 3 === 2
        ? "limiters: ["
        : limits(1_000_000 + n, `  more${n}: { rules: [{ limit: 1, window: 1s }] }\n`),
    );
    server.reload();
    await new Promise((resolve) => setImmediate(resolve));
    await server.ask("/healthz");
  }
  isOver = true;
  await Promise.all(clients);
  expect(sent).toBeGreaterThan(30);
  expect((await server.ask("/v1/limiters/api/keys/a")).body).toMatchObject({ rules: [{ count: sent }] });
});
