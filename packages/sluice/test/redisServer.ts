import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A Redis server of a test's own, on a free port of the loopback. */
export interface RedisServer {
  readonly port: number;
  readonly process: ChildProcess;
  /** Ends it at once, as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, as empty as a restart without persistence leaves it. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

/** A server that keeps nothing on disk; further arguments are redis-server's own. */
export async function startRedis(...args: string[]): Promise<RedisServer> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "sluice-redis-"));
  let child = await start();

  async function start(): Promise<ChildProcess> {
    const options = [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      folder,
      "--save",
      "",
      "--appendonly",
      "no",
    ];
    const started = spawn("redis-server", [...options, ...args], { stdio: "ignore" });
    await Promise.race([
      answering(port),
      new Promise((_, reject) => {
        started.once("error", reject);
        started.once("exit", (code) => reject(new Error(`redis-server ended with ${code} on port ${port}`)));
      }),
    ]);
    return started;
  }

  async function kill(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  return {
    port,
    get process() {
      return child;
    },
    kill,
    async restart() {
      await kill();
      child = await start();
    },
    async stop() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A port that nothing listens on; its cluster bus port (plus 10,000) is in range as well. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = await new Promise<number>((resolve, reject) => {
      const server = createServer();
      server.once("error", reject);
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        server.close(() =>
          typeof address === "object" && address ? resolve(address.port) : reject(new Error("no port")),
        );
      });
    });
    if (port < 55_000) return port;
  }
}

/** Resolves once the port takes connections and answers PING. */
async function answering(port: number): Promise<void> {
  for (;;) {
    const answered = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
      socket.once("data", (data) => {
        socket.destroy();
        resolve(data.toString().startsWith("+PONG"));
      });
      socket.once("error", () => resolve(false));
    });
    if (answered) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
