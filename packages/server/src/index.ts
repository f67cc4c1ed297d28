export type { Address } from "./address.js";
export type { Configuration } from "./config/configuration.js";
export { loadConfiguration, parseConfiguration } from "./config/load.js";
export { ConfigError, type Problem } from "./config/problem.js";
export { type RunningServer, type ServerOptions, startServer } from "./server.js";
