// @ts-check
// Runs one named command of a script: shows its name and duration, and its output only when it fails.
import { spawnSync } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const windows = process.platform === "win32";
const env = {
  ...process.env,
  PATH: [join(root, "node_modules", ".bin"), process.env.PATH].join(delimiter),
};

/**
 * Runs a command in the repository's root and answers how it ended, without showing or judging anything.
 * @param {string[]} command program and arguments; programs of installed packages are found by name
 * @param {"pipe" | "inherit"} [stdio]
 */
export function run([program = "", ...args], stdio = "pipe") {
  const options = /** @type {const} */ ({ cwd: root, env, stdio, encoding: "utf8", shell: windows });
  const result = spawnSync(program, args, { ...options, maxBuffer: 2 ** 28 });
  return {
    code: result.status ?? (result.signal === "SIGINT" ? 130 : 1),
    output: `${result.stdout ?? ""}${result.stderr ?? ""}${result.error ? `${result.error.message}\n` : ""}`,
  };
}

/**
 * Runs a command as a step. A failing step ends the process with the command's own exit code.
 * @param {string} name
 * @param {string[]} command
 */
export function step(name, command) {
  const started = performance.now();
  const { code, output } = run(command);
  const seconds = ((performance.now() - started) / 1000).toFixed(1).padStart(5);
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${name.padEnd(14)} ${seconds} s`);
  if (code !== 0) fail(`\n$ ${command.join(" ")}\n${output}\n${name} failed (exit code ${code})`, code);
}

/**
 * Ends the process with a message.
 * @param {string} message
 * @param {number} [code]
 * @returns {never}
 */
export function fail(message, code = 1) {
  console.error(message);
  process.exit(code);
}
