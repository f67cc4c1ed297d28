import type { FastifyInstance } from "fastify";
import type { Context } from "./context.js";
import { HttpProblem } from "./problems.js";
import { idParams, problem, settleBody } from "./schemas.js";

/** Settling what was reserved, once. */
export function reservationRoutes(app: FastifyInstance, { reservations, flight }: Context): void {
  const response = {
    200: {
      type: "object",
      properties: { settled: { type: "integer", description: "The cost that counts now." } },
    },
    "4xx": problem,
  };
  const settle = async (id: string, cost: number) => {
    if (!(await flight.track(reservations.settle(id, cost)))) {
      throw new HttpProblem(
        404,
        "Not Found",
        "There is no such reservation here: it was settled, its window has passed, or another server holds it.",
      );
    }
    return { settled: cost };
  };

  app.post<{ Params: { id: string }; Body: { cost: number } }>(
    "/v1/reservations/:id/settle",
    {
      schema: { params: idParams, body: settleBody, response, summary: "Charge what it really cost" },
      config: { scope: "decide", endpoint: "settle" },
    },
    ({ params, body }) => settle(params.id, body.cost),
  );

  app.post<{ Params: { id: string } }>(
    "/v1/reservations/:id/cancel",
    {
      schema: { params: idParams, response, summary: "Give everything back" },
      config: { scope: "decide", endpoint: "settle" },
    },
    ({ params }) => settle(params.id, 0),
  );
}
