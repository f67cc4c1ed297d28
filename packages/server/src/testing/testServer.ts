// A server of a test's own, on free ports of the loopback, and real clients to ask it.
import { credentials, type Metadata, makeClientConstructor, type ServiceError } from "@grpc/grpc-js";
import { pino } from "pino";
import { onTestFinished } from "vitest";
import { writeAddress } from "../address.js";
import { parseConfiguration } from "../config/load.js";
import type { RateLimitRequest, RateLimitResponse } from "../envoy/messages.js";
import { rateLimitService } from "../grpc/server.js";
import { type RunningServer, type ServerOptions, startServer } from "../server.js";

const LOOPBACK = { host: "127.0.0.1", port: 0 };

export interface TestServer extends RunningServer {
  readonly base: string;
  /** Asks and answers JSON; the body, where there is one, makes it a POST. */
  ask(
    path: string,
    body?: unknown,
    init?: RequestInit,
  ): Promise<{ status: number; headers: Headers; body: never }>;
}

/** Starts a server with these files' texts; it ends with the test. */
export async function testServer(
  texts: readonly string[],
  options: Partial<ServerOptions> = {},
): Promise<TestServer> {
  const server = await openServer(texts, options);
  onTestFinished(() => server.close());
  return server;
}

/** Starts a server that is its caller's to close. */
export async function openServer(
  texts: readonly string[],
  options: Partial<ServerOptions> = {},
): Promise<TestServer> {
  const configuration = parseConfiguration(texts.map((text, t) => ({ name: `limits${t}.yaml`, text })));
  const log = pino({ level: "silent" });
  const server = await startServer({ configuration, http: LOOPBACK, grpc: LOOPBACK, log, ...options });
  const base = `http://${writeAddress(server.http)}`;
  return { ...server, base, ask: (path, body, init) => askJson(base + path, body, init) };
}

export async function askJson(url: string, body?: unknown, init: RequestInit = {}) {
  const post =
    body === undefined
      ? {}
      : {
          method: "POST",
          body: JSON.stringify(body),
          headers: { "content-type": "application/json", ...init.headers },
        };
  const response = await fetch(url, { ...init, ...post });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: (text === "" ? undefined : JSON.parse(text)) as never,
  };
}

export interface EnvoyClient {
  shouldRateLimit(
    request: Partial<RateLimitRequest>,
    metadata?: Metadata,
    deadlineMs?: number,
  ): Promise<RateLimitResponse>;
  /** Sends bytes as they are where a request should be. */
  sendBytes(bytes: Buffer): Promise<unknown>;
}

/** A real gRPC client of the server. */
export function envoyClient({ grpc }: RunningServer): EnvoyClient {
  if (!grpc) throw new Error("the server has no gRPC");
  const Client = makeClientConstructor(rateLimitService(), "RateLimitService");
  const client = new Client(writeAddress(grpc), credentials.createInsecure());
  onTestFinished(() => client.close());
  type Unary = (request: unknown, ...rest: unknown[]) => void;
  const promised = (call: (done: (error: ServiceError | null, reply?: unknown) => void) => void) =>
    new Promise<unknown>((resolve, reject) =>
      call((error, reply) => (error ? reject(error) : resolve(reply))),
    );
  return {
    shouldRateLimit: (request, metadata, deadlineMs) =>
      promised((done) => {
        const options = deadlineMs === undefined ? {} : { deadline: Date.now() + deadlineMs };
        const args = metadata ? [metadata, options, done] : [options, done];
        (client as unknown as { ShouldRateLimit: Unary }).ShouldRateLimit(request, ...args);
      }) as Promise<RateLimitResponse>,
    sendBytes: (bytes) =>
      promised((done) =>
        client.makeUnaryRequest(
          "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
          () => bytes,
          (reply: Buffer) => reply,
          {},
          done,
        ),
      ),
  };
}

/** `descriptor({ path: "/login", user: "42" })`: its entries in this order. */
export function descriptor(entries: Readonly<Record<string, string>>) {
  return { entries: Object.entries(entries).map(([key, value]) => ({ key, value })) };
}
