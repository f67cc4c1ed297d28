import type { FastifyInstance, FastifyReply } from "fastify";
import type { Key } from "sluice";
import { type Answer, answerJson } from "../limits/answer.js";
import { type Context, limiterNamed } from "./context.js";

interface Asked {
  Params: { name: string };
  Body: { key: Key; cost?: number };
}

const JSON_TYPE = "application/json; charset=utf-8";

/** Taking, looking and reserving. A denial is an answer like another: 200 with `allowed: false`. */
export function decisionRoutes(app: FastifyInstance, context: Context): void {
  app.post<Asked>("/v1/limiters/:name/acquire", ({ params, body }, reply) => {
    const limiter = limiterNamed(context.catalog(), params.name);
    const answer = limiter.tryAcquire(body.key, body.cost ?? 1);
    if (answer instanceof Promise) return answer.then((later) => sendAnswer(reply, later));
    return sendAnswer(reply, answer);
  });
}

function sendAnswer(reply: FastifyReply, answer: Answer): FastifyReply {
  return reply.header("content-type", JSON_TYPE).send(answerJson(answer));
}
