import type { FastifyInstance } from "fastify";
import type { Context } from "./context.js";

/** How long /readyz waits for the store. */
const PATIENCE_MS = 500;

/** Health, readiness, metrics, and the description of all this. */
export function operationRoutes(app: FastifyInstance, context: Context): void {
  const { metrics, stores, flight, reservations } = context;

  app.get(
    "/healthz",
    { schema: { summary: "Whether the process answers" }, config: { scope: "none" } },
    async () => ({
      status: "ok",
    }),
  );

  app.get(
    "/readyz",
    {
      schema: { summary: "Whether it should get traffic, and in what state it is" },
      config: { scope: "none" },
    },
    async (_request, reply) => {
      const { refusedReload, catalog } = context.inForce();
      const isUp = await isAnswering(stores.ping());
      const isReady = !context.isClosing();
      return reply.code(isReady ? 200 : 503).send({
        status: context.isClosing() ? "closing" : "ready",
        store: { kind: stores.kind, answers: isUp, ...(!isUp && { detail: "outage policies answer" }) },
        configuration: {
          limiters: catalog.limiters.size,
          domains: catalog.domains.size,
          ...(refusedReload === undefined
            ? { valid: true }
            : {
                valid: false,
                detail: `the files were refused, the limits before them hold: ${refusedReload}`,
              }),
        },
      });
    },
  );

  app.get(
    "/metrics",
    { schema: { summary: "For Prometheus" }, config: { scope: "read" } },
    async (_request, reply) => {
      metrics.inFlight.set(flight.aloft);
      metrics.reservations.set(reservations.size);
      return reply
        .header("content-type", metrics.registry.contentType)
        .send(await metrics.registry.metrics());
    },
  );

  let description: string | undefined;
  app.get(
    "/openapi.json",
    { schema: { summary: "This description" }, config: { scope: "none" } },
    async (_request, reply) => {
      description ??= JSON.stringify(app.swagger());
      return reply.header("content-type", "application/json; charset=utf-8").send(description);
    },
  );
}

async function isAnswering(ping: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), PATIENCE_MS);
  });
  const answered = ping.then(
    () => true,
    () => false,
  );
  return Promise.race([answered, late]).finally(() => clearTimeout(timer));
}
