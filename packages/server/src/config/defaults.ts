import { fileURLToPath } from "node:url";

/** What is served when no configuration is given: limits to try things out on. */
export const EXAMPLES = fileURLToPath(new URL("../../examples", import.meta.url));

export const HTTP_ADDRESS = "127.0.0.1:8080";
export const GRPC_ADDRESS = "127.0.0.1:8081";
