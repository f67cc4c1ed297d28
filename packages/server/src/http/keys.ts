import type { FastifyInstance } from "fastify";
import { type Context, keyFromPath, limiterNamed } from "./context.js";
import { KEY_LENGTH } from "./decisions.js";
import { HttpProblem } from "./problems.js";
import { keyParams, problem, statusAnswer } from "./schemas.js";

interface Named {
  Params: { name: string; key: string };
}

/** Looking at what is counted, forgetting it, and listing the limiters there are. */
export function keyRoutes(app: FastifyInstance, context: Context): void {
  const { settings, flight } = context;
  const longest = settings.bounds?.keyLength ?? KEY_LENGTH;
  const find = ({ name, key }: Named["Params"]) => {
    if (key.length > longest) {
      throw new HttpProblem(400, "Bad Request", `A key must have at most ${longest} characters.`);
    }
    const limiter = limiterNamed(context.inForce().catalog, name);
    return { limiter, key: keyFromPath(limiter, key) };
  };

  app.get<Named>(
    "/v1/limiters/:name/keys/:key",
    {
      schema: {
        params: keyParams,
        response: { 200: statusAnswer, "4xx": problem },
        summary: "What is counted for a key, rule by rule",
      },
      config: { scope: "read", endpoint: "status" },
    },
    async ({ params }) => {
      const { limiter, key } = find(params);
      const rules = await flight.track(limiter.status(key));
      return {
        rules: rules.map((rule) => ({
          ...rule,
          oldestAt: rule.oldestAt ?? null,
          newestAt: rule.newestAt ?? null,
        })),
      };
    },
  );

  app.delete<Named>(
    "/v1/limiters/:name/keys/:key",
    {
      schema: {
        params: keyParams,
        response: { 204: { type: "null" }, "4xx": problem },
        summary: "Forget a key",
      },
      config: { scope: "admin", endpoint: "reset" },
    },
    async ({ params }, reply) => {
      const { limiter, key } = find(params);
      await flight.track(limiter.reset(key));
      return reply.code(204).send();
    },
  );

  app.get(
    "/v1/limiters",
    { schema: { summary: "The limiters and domains in force" }, config: { scope: "read", endpoint: "list" } },
    async () => {
      const { limiters, domains } = context.inForce().catalog;
      return {
        limiters: [...limiters.values()].map(({ config }) => ({
          name: config.name,
          description: config.description,
          rules: [
            ...config.rules.map((rule) => ({ ...rule, shadow: false })),
            ...config.shadowRules.map((rule) => ({ ...rule, shadow: true })),
          ],
          key: config.key,
          outage: config.outage,
          tiers: config.tiers,
        })),
        domains: [...domains.keys()],
      };
    },
  );
}
