// @ts-check
// `node scripts/lock.mjs [--check]`: completes package-lock.json, or fails where it is not complete.
// npm drops from the lock the optional packages of other platforms whose manifests it could not load
// (npm/cli#9343), and `npm ci` then refuses that lock on every platform. Their versions are pinned by the
// package that wants them, and their names say where they run, so the entries can be written without them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, root } from "./step.mjs";

/** @typedef {{ dev?: boolean, optionalDependencies?: Record<string, string> }} Entry */

const file = join(root, "package-lock.json");
const lock = JSON.parse(readFileSync(file, "utf8"));
/** @type {Record<string, Entry>} */
const packages = lock.packages;
/** @type {Record<string, object>} */
const missing = {};

for (const [path, { dev, optionalDependencies = {} }] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (isLocked(path, name)) continue;
    if (!/^\d+\.\d+\.\d+/.test(version)) fail(`${name}@${version} is not locked, and not pinned by ${path}`);
    const { cpu, libc, os } = platformOf(name);
    missing[`node_modules/${name}`] = { version, cpu, dev, libc, optional: true, os };
  }
}

const names = Object.keys(missing);
if (process.argv.includes("--check")) {
  if (names.length > 0) fail(`package-lock.json lacks ${names.join(", ")}\nRun: npm run fix`);
} else if (names.length > 0) {
  const entries = Object.entries({ ...packages, ...missing });
  lock.packages = Object.fromEntries(entries.sort(([a], [b]) => a.localeCompare(b, "en")));
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  console.log(`package-lock.json: added ${names.length} packages of other platforms`);
}

/**
 * Whether a package, wanted by the one at the path, is found there or in a folder above.
 * @param {string} path
 * @param {string} name
 */
function isLocked(path, name) {
  for (let from = path; ; from = from.slice(0, Math.max(0, from.lastIndexOf("node_modules/") - 1))) {
    if (`${from ? `${from}/` : ""}node_modules/${name}` in packages) return true;
    if (from === "") return false;
  }
}

/**
 * @param {string} name such as "@rolldown/binding-linux-arm64-musl"
 * @returns {{ cpu: string[], libc?: string[], os?: string[] }}
 */
function platformOf(name) {
  if (name.includes("wasm32")) return { cpu: ["wasm32"] };
  const systems = "aix|android|darwin|freebsd|linux|netbsd|openbsd|openharmony|sunos|win32";
  const [, os, cpu, abi = ""] = name.match(`(${systems})-([a-z0-9]+)-?(.*)$`) ?? [];
  if (!os || !cpu) fail(`${name} is not locked, and its name does not say where it runs`);
  if (os !== "linux" || abi === "") return { cpu: [cpu], os: [os] };
  return { cpu: [cpu], libc: [abi.startsWith("musl") ? "musl" : "glibc"], os: [os] };
}
