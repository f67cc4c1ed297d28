// Envoy's request and response as proto3 JSON: names in either case, 64-bit numbers also as text.
import type { FastifyInstance } from "fastify";
import {
  type RateLimitRequest,
  type RateLimitResponse,
  RequestError,
  type RequestedDescriptor,
} from "../envoy/messages.js";
import { shouldRateLimit } from "../envoy/service.js";
import { type Context, refuseOverload } from "./context.js";

/** POST /json: 200 when it passes, 429 when it is over the limit, 500 otherwise, as Envoy's own. */
export async function envoyJsonRoute(app: FastifyInstance, context: Context): Promise<void> {
  // Envoy's own takes a body of any type for JSON, and so do its examples.
  app.addContentTypeParser("*", { parseAs: "string" }, app.getDefaultJsonParser("error", "error"));
  app.post(
    "/json",
    {
      schema: { summary: "Envoy's ShouldRateLimit as proto3 JSON: 200 passes, 429 is over the limit" },
      config: { scope: "decide", endpoint: "json" },
    },
    async ({ body }, reply) => {
      try {
        refuseOverload(context);
        const decided = shouldRateLimit(
          context.inForce().catalog,
          readRequest(body),
          Number.POSITIVE_INFINITY,
        );
        const response = decided instanceof Promise ? await context.flight.track(decided) : decided;
        for (const { key, value } of response.responseHeadersToAdd ?? []) reply.header(key, value);
        return reply.code(response.overallCode === "OK" ? 200 : 429).send(jsonOf(response));
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        return reply.code(500).send({ error: error.message });
      }
    },
  );
}

function jsonOf(response: RateLimitResponse): object {
  return {
    ...response,
    statuses: response.statuses.map(({ durationUntilReset: until, ...status }) => ({
      ...status,
      ...(until && { durationUntilReset: `${until.seconds + until.nanos / 1e9}s` }),
    })),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** The request that a JSON value stands for, or a `RequestError` that says where it stands for none. */
export function readRequest(value: unknown): RateLimitRequest {
  const fields = object(value, "The request", ["domain", "descriptors", "hits_addend", "hitsAddend"]);
  return {
    domain: text(fields.domain, "domain"),
    descriptors: list(fields.descriptors, "descriptors").map(readDescriptor),
    hitsAddend: whole(either(fields, "hitsAddend", "hits_addend") ?? 0, "hitsAddend", 4_294_967_295),
  };
}

function readDescriptor(value: unknown): RequestedDescriptor {
  const fields = object(value, "A descriptor", ["entries", "limit", "hits_addend", "hitsAddend"]);
  const hits = either(fields, "hitsAddend", "hits_addend");
  const entries = list(fields.entries, "entries").map((entry) => {
    const { key, value } = object(entry, "An entry", ["key", "value"]);
    return { key: text(key, "key"), value: text(value, "value") };
  });
  return {
    entries,
    limit: fields.limit === undefined || fields.limit === null ? undefined : readLimit(fields.limit),
    hitsAddend: hits === undefined ? undefined : { value: whole(hits, "hitsAddend", 2 ** 64) },
  };
}

function readLimit(value: unknown): NonNullable<RequestedDescriptor["limit"]> {
  const fields = object(value, "A limit", ["requests_per_unit", "requestsPerUnit", "unit"]);
  return {
    requestsPerUnit: whole(
      either(fields, "requestsPerUnit", "requests_per_unit") ?? 0,
      "requestsPerUnit",
      4_294_967_295,
    ),
    unit: text(fields.unit, "unit"),
  };
}

function either(fields: Fields, name: string, other: string): unknown {
  return fields[name] ?? fields[other] ?? undefined;
}

function object(value: unknown, what: string, known: readonly string[]): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new RequestError(`${what} must be an object.`);
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new RequestError(`${what} has no field ${JSON.stringify(unknown.slice(0, 64))}.`);
  return value as Fields;
}

function list(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new RequestError(`${what} must be a list.`);
  return value;
}

function text(value: unknown, what: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new RequestError(`${what} must be text.`);
  return value;
}

function whole(value: unknown, what: string, most: number): number {
  const number = typeof value === "string" && /^\d{1,20}$/.test(value) ? Number(value) : value;
  if (typeof number === "number" && Number.isInteger(number) && number >= 0 && number <= most) return number;
  throw new RequestError(`${what} must be a whole number from 0 to ${most}.`);
}
