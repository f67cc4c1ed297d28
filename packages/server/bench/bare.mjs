// What the server is compared with: the same messages, parsed and answered by the same parts, undecided.
import { loadPackageDefinition, Server, ServerCredentials } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import Fastify from "fastify";

const integer = { type: "integer" };
const fields = {
  allowed: { type: "boolean" },
  rule: { type: "string" },
  limit: integer,
  remaining: integer,
  retryAfterMs: integer,
  resetAfterMs: integer,
};
const schema = {
  body: {
    type: "object",
    required: ["key"],
    additionalProperties: false,
    properties: { key: { type: "string" }, cost: integer },
  },
  response: {
    200: {
      type: "object",
      properties: { ...fields, rules: { type: "array", items: { type: "object", properties: fields } } },
    },
  },
};

/** A route that takes the body of /acquire and answers its JSON. */
export async function startBareHttp() {
  const app = Fastify({ logger: false });
  app.post("/acquire", { schema }, async ({ body }) => {
    const rule = {
      allowed: true,
      rule: "1m",
      limit: 1_000_000,
      remaining: 1_000_000 - (body.cost ?? 1),
      retryAfterMs: 0,
      resetAfterMs: 60_000,
    };
    return { ...rule, rules: [rule] };
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return app.server.address().port;
}

/** ShouldRateLimit that answers at once. */
export async function startBareGrpc(proto) {
  const { envoy } = loadPackageDefinition(loadSync(proto, { longs: Number, enums: String, defaults: true }));
  const server = new Server();
  server.addService(envoy.service.ratelimit.v3.RateLimitService.service, {
    ShouldRateLimit(call, callback) {
      callback(null, {
        overallCode: "OK",
        statuses: call.request.descriptors.map(() => ({
          code: "OK",
          currentLimit: { requestsPerUnit: 1_000_000, unit: "MINUTE" },
          limitRemaining: 999_999,
          durationUntilReset: { seconds: 60, nanos: 0 },
        })),
      });
    },
  });
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });
}
