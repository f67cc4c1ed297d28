// @ts-check
// Brings a bare clone to where the other scripts can work: packages, a redis-server, the built library.
// Runs before any package is installed, so it imports from Node alone.
import { existsSync, mkdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fail, root, run, step } from "./step.mjs";

/** Installs the locked packages, unless they are there and at least as new as the lock file. */
export function install() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    fail(`Sluice needs Node 20.19 or newer; this is ${process.version}.`);
  }
  const installed = join(root, "node_modules", ".package-lock.json");
  const locked = join(root, "package-lock.json");
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(locked).mtimeMs) return;
  console.log("installing the locked packages (npm ci)");
  step("install", ["npm", "ci"]);
}

/** Compiles every package's src/ to dist/, in the order of their references. */
export function build() {
  step("build", ["tsc", "-b", "tsconfig.build.json"]);
}

/** Makes sure that `redis-server` can be started by name; nothing is left running. */
export function provideRedis() {
  if (runsRedis("redis-server")) return;
  if (linkRedis()) return;
  if (process.platform === "darwin" && isThere("brew")) {
    console.log("no redis-server found: installing it with Homebrew");
    step("redis", ["brew", "install", "redis"]);
  } else if (process.platform === "linux" && isThere("apt-get")) {
    console.log("no redis-server found: installing its program, without the system service, with apt-get");
    aptInstall("redis-tools");
    linkRedis();
  }
  if (runsRedis("redis-server")) return;
  fail(
    "The tests need a real Redis: no redis-server on PATH, and none could be installed from here.\n" +
      "Install Redis 6.2 or newer (Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; " +
      "Alpine: apk add redis; macOS: brew install redis) and run again.",
  );
}

/**
 * Debian's redis-tools carries the server's program under the name redis-check-rdb: one binary, which acts
 * by the name it is called by. The package redis-server adds only that name and a service, which would
 * start at once and take port 6379. So: redis-tools, and the name in node_modules/.bin.
 */
function linkRedis() {
  const program = "/usr/bin/redis-check-rdb";
  const link = join(root, "node_modules", ".bin", "redis-server");
  if (!existsSync(program)) return false;
  mkdirSync(join(root, "node_modules", ".bin"), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(program, link);
  if (runsRedis(link)) return true;
  rmSync(link);
  return false;
}

/** @param {string} name */
function aptInstall(name) {
  const asRoot = process.getuid?.() === 0 ? [] : isThere("sudo") ? ["sudo"] : undefined;
  if (!asRoot) return;
  const apt = [...asRoot, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
  const packages = ["install", "-y", "--no-install-recommends", name];
  if (run([...apt, ...packages]).code === 0) return;
  step("apt update", [...apt, "update"]);
  step("redis", [...apt, ...packages]);
}

/** @param {string} program */
function isThere(program) {
  return run([program, "--version"]).code === 0;
}

/** @param {string} program */
function runsRedis(program) {
  return run([program, "--version"]).output.startsWith("Redis server v=");
}
