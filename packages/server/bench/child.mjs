// A process of its own for each server that is measured: `node child.mjs sluice | bare`.
import { pino } from "pino";
import { PROTO } from "../dist/grpc/server.js";
import { parseConfiguration, startServer } from "../dist/index.js";
import { startBareGrpc, startBareHttp } from "./bare.mjs";

const limits = "limiters: { api: { rules: [{ limit: 1000000, window: 1m }] } }";
const envoy = `
domain: bench
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
  - key: path
    rate_limit: { unit: minute, requests_per_unit: 1000000 }
`;

if (process.argv[2] === "bare") {
  process.send({ http: await startBareHttp(), grpc: await startBareGrpc(PROTO) });
} else {
  const server = await startServer({
    configuration: parseConfiguration([
      { name: "limits.yaml", text: limits },
      { name: "envoy.yaml", text: envoy },
    ]),
    http: { host: "127.0.0.1", port: 0 },
    grpc: { host: "127.0.0.1", port: 0 },
    log: pino({ level: "silent" }),
  });
  process.send({ http: server.http.port, grpc: server.grpc.port });
}
// What this process has worked so far, in microseconds: unlike the clock it does not count its neighbours.
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send({ cpu: user + system });
});
process.once("disconnect", () => process.exit(0));
