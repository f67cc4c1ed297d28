import type { FastifyInstance } from "fastify";
import type { Key } from "sluice";
import { type Answer, briefJson } from "../limits/answer.js";
import type { Catalog } from "../limits/catalog.js";
import { type Context, limiterNamed, refuseOverload } from "./context.js";
import { JSON_TYPE, KEY_LENGTH } from "./decisions.js";
import { problemOf } from "./problems.js";
import { batchAnswer, batchBody, problem } from "./schemas.js";

interface Item {
  readonly limiter: string;
  readonly key: Key;
  readonly cost?: number;
}

const MOST_DECISIONS = 1000;

/** Many decisions in one request: each its own, in order, and one's trouble is not another's. */
export function batchRoute(app: FastifyInstance, context: Context): void {
  app.post<{ Body: { decisions: readonly Item[] } }>(
    "/v1/batch",
    {
      schema: {
        body: batchBody(context.settings.bounds?.keyLength ?? KEY_LENGTH, MOST_DECISIONS),
        response: { 200: batchAnswer, "4xx": problem, 503: problem },
        summary: `Up to ${MOST_DECISIONS} decisions at once, each its own`,
      },
      config: { scope: "decide", endpoint: "batch" },
    },
    ({ body: { decisions } }, reply) => {
      const { catalog } = context.inForce();
      context.metrics.batchSize.observe(decisions.length);
      if (context.stores.kind !== "memory") refuseOverload(context, decisions.length);
      const pending: Promise<void>[] = [];
      const results = new Array<string>(decisions.length);
      for (let d = 0; d < decisions.length; d++) {
        const later = decide(catalog, decisions[d] as Item, results, d);
        if (later) pending.push(later);
      }
      const send = () => reply.header("content-type", JSON_TYPE).send(`{"results":[${results.join(",")}]}`);
      if (pending.length === 0) return send();
      return context.flight.track(Promise.all(pending), decisions.length).then(send);
    },
  );
}

/** Puts one decision's JSON into its place, now or later. */
function decide(catalog: Catalog, item: Item, results: string[], place: number): Promise<void> | undefined {
  try {
    const answer = limiterNamed(catalog, item.limiter).tryAcquire(item.key, item.cost ?? 1);
    if (!(answer instanceof Promise)) {
      results[place] = briefJson(answer);
      return undefined;
    }
    return answer.then(
      (later: Answer) => {
        results[place] = briefJson(later);
      },
      (error: unknown) => {
        results[place] = errorJson(error);
      },
    );
  } catch (error) {
    results[place] = errorJson(error);
    return undefined;
  }
}

function errorJson(error: unknown): string {
  const known = problemOf(error);
  if (!known) throw error;
  return JSON.stringify({ error: { status: known.status, detail: known.message } });
}
