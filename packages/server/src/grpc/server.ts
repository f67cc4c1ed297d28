// Envoy's RateLimitService and the standard health service, over grpc-js.
import { fileURLToPath } from "node:url";
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { HealthImplementation } from "grpc-health-check";
import { type Address, writeAddress } from "../address.js";
import { type RateLimitRequest, type RateLimitResponse, RequestError } from "../envoy/messages.js";
import { shouldRateLimit } from "../envoy/service.js";
import type { AppTls } from "../http/app.js";
import type { Context } from "../http/context.js";

/** The protocol, for clients of one's own: `loadSync(PROTO, …)`. */
export const PROTO = fileURLToPath(new URL("../../proto/ratelimit.proto", import.meta.url));
export const SERVICE = "envoy.service.ratelimit.v3.RateLimitService";

const MESSAGE_BYTES = 262_144;

export interface GrpcServer {
  readonly address: Address;
  /** Answers what is under way and takes nothing new; what has not ended after so long is cut. */
  close(patienceMs: number): Promise<void>;
}

/** The service as grpc-js knows it. */
export function rateLimitService(): ServiceDefinition {
  const loaded = loadPackageDefinition(loadSync(PROTO, { longs: Number, enums: String, defaults: true }));
  let found: unknown = loaded;
  for (const part of SERVICE.split(".")) found = (found as Record<string, unknown>)[part];
  return (found as { service: ServiceDefinition }).service;
}

export async function startGrpc(context: Context, address: Address, tls?: AppTls): Promise<GrpcServer> {
  const server = new Server({
    "grpc.max_receive_message_length": MESSAGE_BYTES,
    "grpc.max_concurrent_streams": 1000,
  });
  server.addService(rateLimitService(), { ShouldRateLimit: answering(context) });
  const health = new HealthImplementation({ "": "SERVING", [SERVICE]: "SERVING" });
  health.addToServer(server as never);
  const port = await bind(server, address, credentials(tls));
  return {
    address: { host: address.host, port },
    async close(patienceMs) {
      health.setStatus("", "NOT_SERVING");
      health.setStatus(SERVICE, "NOT_SERVING");
      const timer = setTimeout(() => server.forceShutdown(), patienceMs);
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      clearTimeout(timer);
    },
  };
}

type Call = ServerUnaryCall<RateLimitRequest, RateLimitResponse>;

function answering(context: Context) {
  const { inForce, flight, metrics, log } = context;
  const endpoint = { endpoint: "grpc" };
  return (call: Call, callback: sendUnaryData<RateLimitResponse>): void => {
    const started = performance.now();
    const end = (response: RateLimitResponse) => {
      callback(null, response);
      metrics.latency.observe(endpoint, (performance.now() - started) / 1000);
    };
    const fail = (error: unknown) => {
      if (!(error instanceof RequestError)) log.error({ err: error }, "a gRPC request failed");
      callback(statusOf(error));
    };
    try {
      refuseUnwelcome(context, call);
      const decided = shouldRateLimit(inForce().catalog, call.request, patienceOf(call));
      if (decided instanceof Promise) flight.track(decided).then(end, fail);
      else end(decided);
    } catch (error) {
      fail(error);
    }
  };
}

/** Throws where the caller may not ask, or where too many ask already. */
function refuseUnwelcome({ inForce, flight, metrics }: Context, call: Call): void {
  const { access } = inForce();
  if (!access.isOpen) {
    const verdict = access.judge(call.metadata.get("authorization")[0]?.toString(), "decide");
    if (verdict !== "granted") {
      metrics.rejected.inc({ reason: "access" });
      const code = verdict === "unknown" ? status.UNAUTHENTICATED : status.PERMISSION_DENIED;
      throw new RequestError("Send a token of scope decide as authorization: Bearer ….", code);
    }
  }
  if (flight.hasRoom()) return;
  metrics.rejected.inc({ reason: "overload" });
  throw new RequestError("Too many decisions wait for the store.", status.RESOURCE_EXHAUSTED);
}

function statusOf(error: unknown): { code: status; details: string } {
  if (error instanceof RequestError)
    return { code: error.code ?? status.INVALID_ARGUMENT, details: error.message };
  return { code: status.UNAVAILABLE, details: "The store did not decide." };
}

/** How long the caller will wait from now. */
function patienceOf(call: Call): number {
  const deadline = call.getDeadline();
  return (typeof deadline === "number" ? deadline : deadline.getTime()) - Date.now();
}

function credentials(tls: AppTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const pair = { private_key: tls.key, cert_chain: tls.cert };
  return ServerCredentials.createSsl(tls.ca ?? null, [pair], tls.ca !== undefined);
}

function bind(server: Server, address: Address, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(writeAddress(address), credentials, (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}
