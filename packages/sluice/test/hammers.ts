import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import type { Told } from "./admissions.js";

export interface Task {
  readonly port: number;
  readonly key: string;
  readonly limit: number;
  readonly window: number;
  readonly forMs: number;
}

/** What one process was told, how its calls failed, and how long the slowest took. */
export interface Report extends Told {
  readonly failures: readonly string[];
  readonly slowestMs: number;
}

/** Processes that hammer one key together; half of them by ioredis, half by node-redis. */
export interface Hammers {
  run(task: Task): Promise<Report>;
  stop(): void;
}

/** One process per entry of `clockErrors`: by how many milliseconds its clock is wrong. */
export async function startHammers(clockErrors: readonly number[]): Promise<Hammers> {
  const children = clockErrors.map((error, n) =>
    fork(join(import.meta.dirname, "hammer.mjs"), [n % 2 === 0 ? "ioredis" : "node-redis", String(error)]),
  );
  await Promise.all(children.map(answer));
  return {
    async run(task) {
      const reports = children.map(answer);
      for (const child of children) child.send(task);
      const all = (await Promise.all(reports)) as Report[];
      return {
        admitted: all.flatMap(({ admitted }) => admitted),
        denied: all.flatMap(({ denied }) => denied),
        failures: all.flatMap(({ failures }) => failures),
        slowestMs: Math.max(...all.map(({ slowestMs }) => slowestMs)),
      };
    },
    stop() {
      for (const child of children) child.kill();
    },
  };
}

function answer(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`a hammer ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message);
    });
  });
}
