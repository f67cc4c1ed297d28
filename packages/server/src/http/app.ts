import swagger from "@fastify/swagger";
import Fastify, { type FastifyInstance } from "fastify";
import type { Scope } from "../access.js";
import { batchRoute } from "./batch.js";
import type { Context } from "./context.js";
import { decisionRoutes } from "./decisions.js";
import { envoyJsonRoute } from "./envoyJson.js";
import { guardRoute } from "./guard.js";
import { keyRoutes } from "./keys.js";
import { operationRoutes } from "./operations.js";
import { problemOf, schemaProblem, sendProblem } from "./problems.js";
import { reservationRoutes } from "./reservations.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** What a token must grant; "none" asks for no token. */
    scope?: Scope | "none";
    /** Under which name its latency is told. */
    endpoint?: string;
  }
}

export interface AppTls {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Clients must show a certificate of this authority. */
  readonly ca?: Buffer;
}

/** Room for a thousand decisions with long keys. */
const BODY_BYTES = 1_048_576;
const MOST_CONNECTIONS = 10_000;

/** The HTTP side: routes, strict schemas, bounded bodies, errors as problem+json. */
export async function createApp(context: Context, tls?: AppTls): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    bodyLimit: context.settings.bounds?.bodyBytes ?? BODY_BYTES,
    routerOptions: { maxParamLength: 16_384 },
    requestTimeout: 30_000,
    return503OnClosing: false,
    schemaErrorFormatter: schemaProblem,
    // Nothing is guessed: a number is no text, and what is not known is refused.
    ajv: {
      customOptions: { coerceTypes: false, removeAdditional: false, allErrors: false, allowUnionTypes: true },
    },
    ...(tls && {
      https: { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: tls.ca !== undefined },
    }),
  }) as unknown as FastifyInstance;
  app.server.maxConnections = context.settings.bounds?.connections ?? MOST_CONNECTIONS;
  app.removeContentTypeParser("text/plain");
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: { title: "Sluice", description: "Exact rate limits over HTTP.", version: "1" },
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    },
  });
  addErrors(app, context);
  addAccess(app, context);
  addTimes(app, context);
  decisionRoutes(app, context);
  reservationRoutes(app, context);
  keyRoutes(app, context);
  batchRoute(app, context);
  guardRoute(app, context);
  await app.register((inner) => envoyJsonRoute(inner, context));
  operationRoutes(app, context);
  return app;
}

function addErrors(app: FastifyInstance, { log, metrics }: Context): void {
  app.setErrorHandler((error, _request, reply) => {
    const problem = problemOf(error);
    if (problem) {
      if (problem.status < 500) metrics.rejected.inc({ reason: "bad_request" });
      return sendProblem(reply, problem.status, problem.title, problem.message);
    }
    log.error({ err: error }, "a request failed");
    return sendProblem(reply, 500, "Internal Server Error", "The server failed; its log tells why.");
  });
  app.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, 404, "Not Found", "There is nothing here; GET /openapi.json lists what there is."),
  );
}

function addAccess(app: FastifyInstance, { inForce, metrics }: Context): void {
  app.addHook("onRequest", (request, reply, done) => {
    const { access } = inForce();
    if (access.isOpen) return done();
    const { scope = "admin" } = request.routeOptions.config;
    if (scope === "none") return done();
    const verdict = access.judge(request.headers.authorization, scope);
    if (verdict === "granted") return done();
    metrics.rejected.inc({ reason: "access" });
    if (verdict === "forbidden") {
      sendProblem(reply, 403, "Forbidden", `This needs a token of scope ${scope}.`);
    } else {
      reply.header("www-authenticate", "Bearer");
      sendProblem(reply, 401, "Unauthorized", "Send a token: Authorization: Bearer ….");
    }
  });
}

function addTimes(app: FastifyInstance, { isClosing, metrics }: Context): void {
  const { latency } = metrics;
  app.addHook("onResponse", (request, reply, done) => {
    const { endpoint } = request.routeOptions.config;
    if (endpoint !== undefined) latency.observe({ endpoint }, reply.elapsedTime / 1000);
    done();
  });
  // On the way out, every answer asks its client to leave, so that no connection is cut under a request.
  app.addHook("onSend", (_request, reply, _payload, done) => {
    if (isClosing()) reply.header("connection", "close");
    done();
  });
}
