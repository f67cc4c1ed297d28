// @ts-check
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { suites } from "../suites/index.mjs";
import { machineClass, versions } from "./machine.mjs";

const child = fileURLToPath(new URL("./suite-child.mjs", import.meta.url));

/**
 * Runs one suite in a process of its own.
 * @param {string} name
 * @param {{ rounds: number, roundMs: number, scale: number }} effort
 * @param {(share: number) => void} [onProgress]
 * @returns {Promise<import("./report.mjs").Report>}
 */
export async function runSuite(name, effort, onProgress = () => {}) {
  const suite = suites[name];
  if (suite === undefined) throw new Error(`no suite ${name}`);
  const { title, about } = suite;
  /** @type {import("./report.mjs").Measured} */
  const { sections, targets } = await new Promise((resolve, reject) => {
    const worker = fork(child, [name, JSON.stringify(effort)], { execArgv: ["--expose-gc"] });
    worker.on("message", (/** @type {any} */ message) => {
      if (message.result) resolve(message.result);
      else onProgress(message.share);
    });
    worker.once("exit", (code) => reject(new Error(`suite ${name} ended with exit code ${code}`)));
  });
  const date = new Date().toISOString().slice(0, 10);
  return {
    suite: name,
    title,
    about,
    date,
    machine: machineClass(),
    versions: versions(),
    sections,
    targets,
  };
}
