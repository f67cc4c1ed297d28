// @ts-check
// `npm start`: node scripts/start.mjs [--redis] <module> [args]. Installs what is missing, builds, runs the module.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, install, provideRedis } from "./setup.mjs";
import { fail, root } from "./step.mjs";

const needsRedis = process.argv[2] === "--redis";
if (needsRedis) process.argv.splice(2, 1);
const [module] = process.argv.slice(2);
if (!module) fail("usage: node scripts/start.mjs [--redis] <module> [args]");

install();
if (needsRedis) provideRedis();
build();
// In this process, so that signals reach it; it finds its arguments where a module of its own would.
process.argv.splice(1, 2, join(root, module));
await import(pathToFileURL(join(root, module)).href);
