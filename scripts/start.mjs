// @ts-check
// `npm start`: node scripts/start.mjs <module> [args]. Installs what is missing, builds, runs the module.
import { build, install } from "./setup.mjs";
import { fail, run } from "./step.mjs";

const [module, ...args] = process.argv.slice(2);
if (!module) fail("usage: node scripts/start.mjs <module> [args]");

install();
build();
process.exit(run([process.execPath, module, ...args], "inherit").code);
