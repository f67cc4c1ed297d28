import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Redis } from "ioredis";

export interface SharedLoad {
  readonly port: number;
  readonly processes: number;
  readonly leases: boolean;
  readonly limit: number;
  readonly window: number;
  /** How much is asked for by all together, as a multiple of the limit. */
  readonly load: number;
  readonly durationMs: number;
}

export interface SharedOutcome {
  readonly calls: number;
  readonly failed: number;
  readonly admitted: number;
  /** How many an exact log would have admitted of the same calls, had it heard of each at once. */
  readonly ideal: number;
  /** How many scripts Redis ran. */
  readonly roundTrips: number;
  /** The most that was certainly admitted in one window. */
  readonly most: number;
}

/** Runs processes on one Redis, merges what they admitted and counts every window. */
export async function runProcesses(options: SharedLoad): Promise<SharedOutcome> {
  const { port, processes, load, limit, window, durationMs } = options;
  const client = new Redis(port);
  await client.call("FLUSHALL");
  await client.call("CONFIG", "RESETSTAT");
  const own = {
    ...options,
    perSecond: (load * limit * 1000) / window / processes,
    // Long enough for all of them to have started on a busy machine.
    startAt: Date.now() + 1500 + 250 * processes,
  };
  const script = fileURLToPath(new URL("./tierProcess.mjs", import.meta.url));
  const run = promisify(execFile);
  const args = [script, JSON.stringify(own)];
  const outputs = await Promise.all(
    Array.from({ length: processes }, () =>
      run(process.execPath, args, { maxBuffer: 2 ** 28, timeout: durationMs + 60_000 }),
    ),
  );
  const results = outputs.map(({ stdout }) => JSON.parse(stdout));
  const stats = String(await client.call("INFO", "commandstats"));
  client.disconnect();
  const admitted: (readonly [number, number])[] = results.flatMap((result) => result.admitted);
  const calls: number[] = results.flatMap((result) => result.calls);
  return {
    calls: calls.length,
    failed: results.reduce((total, result) => total + result.failed, 0),
    ideal: idealOf(calls, limit, window),
    admitted: admitted.length,
    roundTrips: callsOf(stats, "evalsha") + callsOf(stats, "eval"),
    most: mostCertainly(admitted, window),
  };
}

function callsOf(stats: string, command: string): number {
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

function idealOf(calls: readonly number[], limit: number, window: number): number {
  const admitted: number[] = [];
  for (const at of [...calls].sort((a, b) => a - b)) {
    const left = admitted[admitted.length - limit];
    if (left === undefined || at - left >= window) admitted.push(at);
  }
  return admitted.length;
}

/** Counts what lies inside a window with both ends, for the windows that begin with each admission. */
function mostCertainly(admitted: readonly (readonly [number, number])[], window: number): number {
  const froms = admitted.map(([from]) => from).sort((a, b) => a - b);
  const tos = admitted.map(([, to]) => to).sort((a, b) => a - b);
  let most = 0;
  let end = 0;
  froms.forEach((from, before) => {
    while (end < tos.length && tos[end] < from + window) end++;
    if (before === 0 || froms[before - 1] !== from) most = Math.max(most, end - before);
  });
  return most;
}
