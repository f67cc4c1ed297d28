import Fastify, { type FastifyInstance } from "fastify";
import type { Context } from "./context.js";
import { decisionRoutes } from "./decisions.js";
import { problemOf, sendProblem } from "./problems.js";

/** Room for a thousand decisions with long keys. */
const BODY_BYTES = 1_048_576;

/** The HTTP side: routes, strict schemas, bounded bodies, errors as problem+json. */
export async function createApp(context: Context): Promise<FastifyInstance> {
  const app = Fastify({
    logger: false,
    bodyLimit: context.settings.bounds?.bodyBytes ?? BODY_BYTES,
    routerOptions: { maxParamLength: 2048 },
    requestTimeout: 30_000,
    return503OnClosing: false,
    // Nothing is guessed: a number is no text, and what is not known is refused.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
  });
  app.removeContentTypeParser("text/plain");
  app.setErrorHandler((error, _request, reply) => {
    const problem = problemOf(error);
    if (problem) return sendProblem(reply, problem.status, problem.title, problem.message);
    context.log.error({ err: error }, "a request failed");
    return sendProblem(reply, 500, "Internal Server Error", "The server failed; its log tells why.");
  });
  app.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, 404, "Not Found", "There is nothing here; GET /openapi.json lists what there is."),
  );
  decisionRoutes(app, context);
  return app;
}
