// @ts-check
// `npm start`: node scripts/start.mjs <module> [args]. Installs what is missing, builds, runs the module.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, install } from "./setup.mjs";
import { fail, root } from "./step.mjs";

const [module] = process.argv.slice(2);
if (!module) fail("usage: node scripts/start.mjs <module> [args]");

install();
build();
// In this process, so that signals reach it; it finds its arguments where a module of its own would.
process.argv.splice(1, 2, join(root, module));
await import(pathToFileURL(join(root, module)).href);
