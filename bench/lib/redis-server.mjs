// @ts-check
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";

/** Where `npm run bench` may have put a link to the program. */
const PATH = [fileURLToPath(new URL("../../node_modules/.bin", import.meta.url)), process.env.PATH].join(
  delimiter,
);

export function redisVersion() {
  const answer = execFileSync("redis-server", ["--version"], {
    env: { ...process.env, PATH },
    encoding: "utf8",
  });
  return /v=(\S+)/.exec(answer)?.[1] ?? "unknown";
}

/**
 * A Redis of one's own that keeps nothing on disk, reached by a socket in a folder that goes with it.
 * @returns {Promise<{ path: string, connect: () => Redis, signal: (name: "SIGSTOP" | "SIGCONT") => void, stop: () => Promise<void> }>}
 */
export async function startRedis() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"));
  const path = join(folder, "redis.sock");
  const options = ["--port", "0", "--unixsocket", path, "--dir", folder, "--save", "", "--appendonly", "no"];
  const server = spawn("redis-server", options, { stdio: "ignore", env: { ...process.env, PATH } });
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.once("error", (error) => {
    throw new Error("redis-server cannot be started; `npm run bench` installs it", { cause: error });
  });
  process.once("exit", () => server.kill("SIGKILL"));
  /** @type {Redis[]} */
  const clients = [];
  const connect = () => {
    const client = new Redis({ path, retryStrategy: () => 20, maxRetriesPerRequest: null });
    client.on("error", () => {}); // until the server listens
    clients.push(client);
    return client;
  };
  await connect().ping();
  return {
    path,
    connect,
    signal: (name) => void server.kill(name),
    async stop() {
      for (const client of clients) client.disconnect();
      server.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
