import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { runSluice, serverProcess } from "../testing/serverProcess.js";
import { testServer } from "../testing/testServer.js";

function file(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-command-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "limits.yaml");
  writeFileSync(path, text);
  return path;
}

const LIMITS = `
limiters:
  api: { rules: [{ limit: 3, window: 1m }] }
  login: { rules: [{ name: account, limit: 2, window: 1m, by: [account] }] }
`;

test("serve without a configuration greets with three commands, each of which works", async () => {
  const server = await serverProcess();
  await server.logged("All endpoints");
  const commands = server.log().match(/^ {4}curl .*$/gm) ?? [];
  expect(commands).toHaveLength(3);
  const answers = [];
  for (const command of commands) {
    const { stdout } = await promisify(execFile)("sh", ["-c", `${command.trim()} --fail`]);
    answers.push(JSON.parse(stdout));
  }
  expect(answers).toMatchObject([
    { allowed: true, remaining: 99 },
    { rules: [{ count: 1 }] },
    {
      results: [
        { allowed: true, remaining: 98 },
        { allowed: true, remaining: 95 },
      ],
    },
  ]);
  expect(await server.end("SIGINT")).toBe(0);
});

test("check says what it found, or all that is wrong and where", async () => {
  expect(await runSluice(["check", file(LIMITS)])).toEqual({
    code: 0,
    out: "ok: limiters api, login\n",
    err: "",
  });
  const path = file("limiters:\n  api: { rules: [{ limit: 0, window: 1x }] }\n");
  const { code, out, err } = await runSluice(["check", path]);
  expect([code, out]).toEqual([1, ""]);
  expect(err).toContain(
    `${path}:2:27: limiters.api.rules[0].limit must be a whole number of at least 1; got 0`,
  );
  expect(err).toContain(`${path}:2:38: limiters.api.rules[0].window must be a duration such as`);
});

test("try explains a decision against a file", async () => {
  const path = file(LIMITS);
  const allowed = await runSluice(["try", "-c", path, "api", "alice"]);
  expect(allowed).toMatchObject({ code: 0, err: "" });
  expect(allowed.out).toContain('allowed: rule "1m" (3 per 1 min, slidingLog) binds, with 2 of 3 left.');
  const denied = await runSluice(["try", "-c", path, "api", "alice", "--times", "4"]);
  expect(denied.code).toBe(2);
  expect(denied.out).toMatch(
    /denied by rule "1m" .*: 0 left, 1 asked; the same cost fits in (1 min|\d\d(\.\d)? s)\./,
  );
  const never = await runSluice(["try", "-c", path, "login", "account=1", "--cost", "3"]);
  expect(never.out).toContain("denied for good: a cost of 3 is more than rule");
  expect((await runSluice(["try", "-c", path, "nothing", "a"])).err).toContain("there are: api, login");
  expect((await runSluice(["try", "demo", "path=/login,remote_address=1.1.1.1", "other=1"])).out).toBe(
    "domain demo: OK\n  OK         path=/login,remote_address=1.1.1.1: 3 per minute, 2 left\n  OK         other=1: no limit matches\n",
  );
});

test("try explains a decision of a running server", async () => {
  const server = await testServer([
    LIMITS,
    "domain: x\ndescriptors: [{ key: a, rate_limit: { unit: day, requests_per_unit: 1 } }]",
  ]);
  const peeked = await runSluice(["try", "--server", server.base, "api", "bob", "--cost", "3", "--peek"]);
  expect(peeked.out).toContain("with 3 of 3 left");
  const taken = await runSluice(["try", "-s", server.base, "login", "account=7", "--times", "3"]);
  expect(taken).toMatchObject({
    code: 2,
    out: expect.stringContaining('denied by rule "account" (2 per 1 min, slidingLog)'),
  });
  expect((await runSluice(["try", "-s", server.base, "x", "a=1", "--times", "2"])).out).toContain(
    "domain x: OVER_LIMIT",
  );
  expect((await runSluice(["try", "-s", "http://127.0.0.1:1", "api", "bob"])).err).toContain(
    "does not answer",
  );
});

test("serve refuses what it should not start with", async () => {
  expect(await runSluice(["serve", "-c", file("limiters: {"), "-l", "127.0.0.1:0"])).toMatchObject({
    code: 1,
  });
  const exposed = await runSluice(["serve", "-c", file(LIMITS), "-l", "0.0.0.0:0"]);
  expect(exposed).toMatchObject({
    code: 1,
    err: expect.stringContaining("can be reached by others, and no token is set"),
  });
  expect((await runSluice(["serve", "-l", "nonsense"])).err).toContain("an address with a port");
});

test("help teaches", async () => {
  const { out } = await runSluice(["--help"]);
  for (const word of ["serve", "check", "try", "inspect", "limiters:", "curl"]) expect(out).toContain(word);
  for (const command of ["serve", "try", "inspect"]) {
    expect((await runSluice([command, "--help"])).out).toContain("Examples:");
  }
});
