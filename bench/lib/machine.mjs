// @ts-check
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { arch, cpus, type } from "node:os";
import { redisVersion } from "./redis-server.mjs";

/** The class of machine: enough to judge the figures by, nothing that names it. */
export function machineClass() {
  return `${cpus().length} cores, ${type()} ${arch()}, Node ${process.versions.node.split(".")[0]}`;
}

/** The versions of everything that is measured: Sluice and the pinned peers. */
export function versions() {
  const { devDependencies } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  /** @type {Record<string, string>} */
  const found = { node: process.version, redis: redisVersion() };
  for (const name of Object.keys(devDependencies)) found[name] = versionOf(name);
  return found;
}

/** @param {string} name */
function versionOf(name) {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? [];
  for (const folder of folders) {
    try {
      return JSON.parse(readFileSync(`${folder}/${name}/package.json`, "utf8")).version;
    } catch {
      // not in this folder
    }
  }
  throw new Error(`${name} is not installed`);
}
