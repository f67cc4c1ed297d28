// @ts-check
// A process with one guarded server: `node http-child.mjs <framework> <guard> <limit>`. Tells its port, and
// then, when asked, what it has worked so far, in microseconds.
import { once } from "node:events";
import { frameworks } from "../contenders/http.mjs";

const [framework = "", guard = "", limit = ""] = process.argv.slice(2);
const make = frameworks[framework]?.make[/** @type {import("../contenders/http.mjs").Guard} */ (guard)];
if (make === undefined) throw new Error(`no ${guard} of ${framework}`);

const server = await make({ limit: Number(limit), windowMs: 60_000 });
server.keepAliveTimeout = 0; // others have their turns meanwhile
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.(user + system);
});
process.once("disconnect", () => process.exit(0));
process.send?.(/** @type {import("node:net").AddressInfo} */ (server.address()).port);
