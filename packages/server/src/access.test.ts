import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { readAccess } from "./access.js";
import { testServer } from "./testing/testServer.js";

const LIMITS = "limiters: { api: { rules: [{ limit: 3, window: 1m }], key: '{ip}' } }";
const [READ, DECIDE, ADMIN] = ["read-read-read-read", "decide-decide-decide", "admin-admin-admin-admin"];
const TOKENS = `
tokens:
  - { name: dashboards, scope: read, env: READ }
  - { name: services, env: DECIDE }
  - { name: people, scope: admin, sha256: "${createHash("sha256").update(ADMIN!).digest("hex")}" }
`;

afterEach(() => vi.unstubAllEnvs());

test("each scope grants what it says, and the ones above it too", async () => {
  vi.stubEnv("READ", READ);
  vi.stubEnv("DECIDE", DECIDE);
  const { ask } = await testServer([LIMITS, TOKENS]);
  const calls: [string, unknown, RequestInit][] = [
    ["/v1/limiters", undefined, {}],
    ["/v1/limiters/api/peek", { key: "a" }, {}],
    ["/metrics", undefined, { method: "HEAD" }],
    ["/v1/limiters/api/acquire", { key: "a" }, {}],
    ["/v1/batch", { decisions: [] }, {}],
    ["/v1/guard/api", undefined, { method: "HEAD" }],
    ["/v1/limiters/api/keys/a", undefined, { method: "DELETE" }],
  ];
  const statuses = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answers = [];
    for (const [path, body, init] of calls)
      answers.push((await ask(path, body, { ...init, headers })).status);
    return answers.map((status) => (status < 300 ? "ok" : status));
  };
  expect(await statuses()).toEqual([401, 401, 401, 401, 401, 401, 401]);
  expect(await statuses("wrong-wrong-wrong-wrong")).toEqual([401, 401, 401, 401, 401, 401, 401]);
  expect(await statuses(READ)).toEqual(["ok", "ok", "ok", 403, 403, 403, 403]);
  expect(await statuses(DECIDE)).toEqual(["ok", "ok", "ok", "ok", "ok", "ok", 403]);
  expect(await statuses(ADMIN)).toEqual(["ok", "ok", "ok", "ok", "ok", "ok", "ok"]);
  expect((await ask("/healthz")).status).toBe(200);
  expect((await ask("/v1/nothing")).status).toBe(401);
});

test("another address than the loopback needs a token, or to be told that it does not", async () => {
  const everywhere = { host: "0.0.0.0", port: 0 };
  await expect(testServer([LIMITS], { http: everywhere })).rejects.toThrow("no token is set");
  await expect(testServer([LIMITS], { grpc: everywhere })).rejects.toThrow("--insecure");
  await testServer([LIMITS], { http: everywhere, insecure: true });
  vi.stubEnv("SLUICE_TOKEN", ADMIN);
  const { http } = await testServer([LIMITS], { http: everywhere });
  const open = await fetch(`http://127.0.0.1:${http.port}/v1/limiters`);
  const own = await fetch(`http://127.0.0.1:${http.port}/v1/limiters`, {
    headers: { authorization: `Bearer ${ADMIN}` },
  });
  expect([open.status, own.status]).toEqual([401, 200]);
});

test("a token that is missing or short is refused at the start", () => {
  expect(() => readAccess({ tokens: [{ name: "a", scope: "read", env: "NOT_SET" }] }, {})).toThrow(
    "NOT_SET must hold a token",
  );
  expect(() =>
    readAccess({ tokens: [{ name: "a", scope: "read", env: "SHORT" }] }, { SHORT: "abc" }),
  ).toThrow("at least 16");
});

test("a token may stand in a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-token-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "token");
  writeFileSync(file, `${DECIDE}\n`);
  const access = readAccess({ tokens: [{ name: "a", scope: "decide", file }] }, {});
  expect([
    access.judge(`Bearer ${DECIDE}`, "read"),
    access.judge(`Bearer ${DECIDE}`, "admin"),
    access.judge(undefined, "read"),
    access.judge(`Basic ${DECIDE}`, "read"),
  ]).toEqual(["granted", "forbidden", "unknown", "unknown"]);
});
