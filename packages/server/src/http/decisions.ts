import type { FastifyInstance, FastifyReply } from "fastify";
import type { Key } from "sluice";
import { type HeaderFormat, rateLimitHeaders, retryAfterSeconds } from "sluice/http";
import { type Answer, answerJson } from "../limits/answer.js";
import type { LiveLimiter } from "../limits/liveLimiter.js";
import { type Context, limiterNamed, refuseOverload } from "./context.js";
import { HttpProblem } from "./problems.js";
import { answer, decisionBody, nameParams, problem, reservationAnswer } from "./schemas.js";

interface Asked {
  Params: { name: string };
  Body: { key: Key; cost?: number };
}

export const JSON_TYPE = "application/json; charset=utf-8";
/** A key is an identity, not a payload. */
export const KEY_LENGTH = 1024;

/** Taking, looking and reserving. A denial is an answer like another: 200 with `allowed: false`. */
export function decisionRoutes(app: FastifyInstance, context: Context): void {
  const { settings, flight, metrics, reservations } = context;
  const format = headerFormat(settings.headers);
  const body = decisionBody(settings.bounds?.keyLength ?? KEY_LENGTH);
  const describe = (summary: string, answers: object) => ({
    params: nameParams,
    body,
    summary,
    response: { 200: answers, "4xx": problem, 503: problem },
  });

  app.post<Asked>(
    "/v1/limiters/:name/acquire",
    {
      schema: describe("Take a cost now, or be told when", answer),
      config: { scope: "decide", endpoint: "acquire" },
    },
    ({ params, body }, reply) => {
      const limiter = limiterNamed(context.inForce().catalog, params.name);
      if (!limiter.isSync) refuseOverload(context);
      const decided = limiter.tryAcquire(body.key, body.cost ?? 1);
      if (decided instanceof Promise) {
        return flight.track(decided).then((later) => sendAnswer(reply, later, limiter, format));
      }
      return sendAnswer(reply, decided, limiter, format);
    },
  );

  app.post<Asked>(
    "/v1/limiters/:name/peek",
    {
      schema: describe("What acquire would answer, charging nothing", answer),
      config: { scope: "read", endpoint: "peek" },
    },
    async ({ params, body }, reply) => {
      const limiter = limiterNamed(context.inForce().catalog, params.name);
      if (!limiter.isSync) refuseOverload(context);
      return sendAnswer(reply, await flight.track(limiter.peek(body.key, body.cost ?? 1)), limiter, format);
    },
  );

  app.post<Asked>(
    "/v1/limiters/:name/reserve",
    {
      schema: describe("Take a cost now that is settled when the real one is known", reservationAnswer),
      config: { scope: "decide", endpoint: "reserve" },
    },
    async ({ params, body }, reply) => {
      const limiter = limiterNamed(context.inForce().catalog, params.name);
      if (!limiter.isSync) refuseOverload(context);
      if (!reservations.hasRoom()) {
        metrics.rejected.inc({ reason: "reservations" });
        throw new HttpProblem(
          503,
          "Temporary reduced capacity",
          "Too many reservations are open; settle some.",
        );
      }
      const { answer, reservations: parts } = await flight.track(limiter.reserve(body.key, body.cost ?? 1));
      const id = answer.allowed ? reservations.hold(parts, limiter.longestWindowMs) : null;
      const head = `{"id":${JSON.stringify(id)},"expiresAfterMs":${limiter.longestWindowMs},`;
      addHeaders(reply, answer, limiter, format);
      return reply.header("content-type", JSON_TYPE).send(head + answerJson(answer).slice(1));
    },
  );
}

export function headerFormat(
  setting: "draft-11" | "draft-7" | "draft-6" | "legacy" | "none" = "draft-11",
): HeaderFormat {
  return setting === "none" ? false : setting;
}

function sendAnswer(
  reply: FastifyReply,
  answer: Answer,
  limiter: LiveLimiter,
  format: HeaderFormat,
): FastifyReply {
  addHeaders(reply, answer, limiter, format);
  return reply.header("content-type", JSON_TYPE).send(answerJson(answer));
}

/** The RateLimit headers and, where it was denied, Retry-After. */
export function addHeaders(
  reply: FastifyReply,
  answer: Answer,
  limiter: LiveLimiter,
  format: HeaderFormat,
): void {
  for (const [name, value] of rateLimitHeaders(format, answer, limiter.rules)) reply.header(name, value);
  if (answer.allowed) return;
  const seconds = retryAfterSeconds(answer);
  if (seconds !== undefined && seconds > 0) reply.header("Retry-After", seconds);
}
