import type { FastifyInstance, FastifyRequest } from "fastify";
import { clientReader, refusalOf } from "sluice/http";
import type { TemplateSource } from "../limits/template.js";
import { type Context, limiterNamed, refuseOverload } from "./context.js";
import { addHeaders, headerFormat } from "./decisions.js";
import { HttpProblem } from "./problems.js";
import { nameParams, problem } from "./schemas.js";

interface Asked {
  Params: { name: string };
  Querystring: { deny?: number };
}

/**
 * Forward authentication: a proxy asks with the headers of the request it holds, and lets it pass on 200.
 * nginx takes any answer but 2xx, 401 and 403 for a fault, so `?deny=403` answers a refusal with that.
 */
export function guardRoute(app: FastifyInstance, context: Context): void {
  const { settings, flight } = context;
  const format = headerFormat(settings.headers);
  const clientOf = clientReader({ trustProxy: settings.trustProxy ?? 1 }, header);

  app.route<Asked>({
    method: ["GET", "HEAD"],
    url: "/v1/guard/:name",
    schema: {
      params: nameParams,
      querystring: {
        type: "object",
        additionalProperties: false,
        properties: {
          deny: {
            type: "string",
            enum: ["403", "429"],
            description: "The status of a refusal: 429 unless told.",
          },
        },
      },
      summary: "Whether a forwarded request may pass: for Caddy, Traefik and nginx",
      response: { 200: { type: "null" }, 429: problem, "4xx": problem, 503: problem },
    },
    config: { scope: "decide", endpoint: "guard" },
    async handler(request, reply) {
      const limiter = limiterNamed(context.inForce().catalog, request.params.name);
      const key = limiter.keyOf(forwarded(request, clientOf));
      if (key === undefined) {
        throw new HttpProblem(
          400,
          "Bad Request",
          'This limiter has no key template; give it one, such as key: "{ip}".',
        );
      }
      if (!limiter.isSync) refuseOverload(context);
      const decided = limiter.tryAcquire(key, 1);
      const answer = decided instanceof Promise ? await flight.track(decided) : decided;
      addHeaders(reply, answer, limiter, format);
      if (answer.allowed) return reply.code(200).send();
      const refusal = refusalOf(answer, limiter.rules);
      const status = refusal.status === 429 ? Number(request.query.deny ?? 429) : refusal.status;
      return reply.code(status).headers(refusal.headers).send(refusal.body);
    },
  });
}

/** What the proxies tell of the request they hold: X-Forwarded-* of Caddy and Traefik, X-Original-* of nginx. */
function forwarded(
  request: FastifyRequest,
  clientOf: (request: FastifyRequest, peer: string | undefined) => string | undefined,
): TemplateSource {
  const first = (...names: string[]) => {
    for (const name of names) {
      const value = header(request, name);
      if (value !== undefined && value !== "") return value;
    }
    return undefined;
  };
  return {
    ip: () => clientOf(request, request.socket.remoteAddress) ?? "unknown",
    method: () =>
      (first("x-forwarded-method", "x-original-method") ?? request.method).slice(0, 32).toUpperCase(),
    path: () => pathOf(first("x-forwarded-uri", "x-original-uri") ?? "/"),
    host: () => (first("x-forwarded-host", "host") ?? "").toLowerCase(),
    header: (name) => header(request, name),
  };
}

function pathOf(uri: string): string {
  const end = uri.search(/[?#]/);
  return end < 0 ? uri : uri.slice(0, end);
}

function header(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
