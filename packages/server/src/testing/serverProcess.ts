// The built `sluice` command in a process of its own, for what only a process can show: signals and crashes.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const BIN = fileURLToPath(new URL("../../dist/bin.js", import.meta.url));

export interface ServerProcess {
  readonly base: string;
  readonly grpcPort: number;
  readonly child: ChildProcess;
  /** The log so far, as it was written. */
  log(): string;
  /** Resolves once a log entry has this message. */
  logged(message: string): Promise<void>;
  /** Signals, and resolves with the exit code, or the signal's name, once it has ended. */
  end(signal: NodeJS.Signals): Promise<number | string | null>;
}

/** `sluice serve` on free ports; it ends with the test at the latest. */
export async function serverProcess(...args: string[]): Promise<ServerProcess> {
  const child = spawn(process.execPath, [
    BIN,
    "serve",
    "--listen",
    "127.0.0.1:0",
    "--grpc",
    "127.0.0.1:0",
    ...args,
  ]);
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  const heard = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      log += text;
      for (const listener of heard) listener();
    });
  }
  const until = <T>(find: () => T | undefined) =>
    new Promise<T>((resolve, reject) => {
      const look = () => {
        const found = find();
        if (found === undefined) return;
        heard.delete(look);
        resolve(found);
      };
      heard.add(look);
      child.once("exit", () => reject(new Error(`sluice ended:\n${log}`)));
      look();
    });
  const [, http, grpc] = await until(
    () =>
      log.match(/"http":\{"host":"127.0.0.1","port":(\d+)\},"grpc":\{"host":"127.0.0.1","port":(\d+)\}/) ??
      undefined,
  );
  return {
    base: `http://127.0.0.1:${http}`,
    grpcPort: Number(grpc),
    child,
    log: () => log,
    logged: async (message) => void (await until(() => (log.includes(message) ? true : undefined))),
    async end(signal) {
      const ended = once(child, "exit");
      child.kill(signal);
      const [code, name] = (await ended) as [number | null, string | null];
      return code ?? name;
    },
  };
}

/** Runs a command of `sluice` to its end. */
export async function runSluice(
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [BIN, ...args], { env: { ...process.env, ...env } });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { code, out, err };
}
