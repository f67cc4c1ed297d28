// Errors as application/problem+json (RFC 9457), each saying what to do.
import type { FastifyError, FastifyReply, FastifySchemaValidationError } from "fastify";
import { SluiceError } from "sluice";

/** An error that the caller is told of. */
export class HttpProblem extends Error {
  override readonly name = "HttpProblem";
  readonly status: number;
  readonly title: string;

  constructor(status: number, title: string, detail: string) {
    super(detail);
    this.status = status;
    this.title = title;
  }
}

const CAPACITY = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

export function sendProblem(
  reply: FastifyReply,
  status: number,
  title: string,
  detail: string,
): FastifyReply {
  const type = status === 503 ? CAPACITY : undefined;
  return reply
    .code(status)
    .header("content-type", "application/problem+json")
    .send(JSON.stringify({ ...(type && { type }), title, status, detail }));
}

/** What a body or parameter has against its schema, in one sentence. */
export function schemaProblem(errors: readonly FastifySchemaValidationError[], where: string): Error {
  const [error] = errors;
  const place = (error?.instancePath ?? "").slice(1).replaceAll("/", ".");
  const what = place === "" ? `The ${where}` : place;
  const [, key] = /^((?:decisions\.\d+\.)?key)\b/.exec(place) ?? [];
  if (key)
    return new Error(`${key} must be text that is neither empty nor too long, or an object of such parts.`);
  if (error?.keyword === "additionalProperties") {
    return new Error(
      `${what} has no field ${JSON.stringify(String(error.params.additionalProperty).slice(0, 64))}.`,
    );
  }
  return new Error(`${what} ${error?.message ?? "is not as the schema has it"}.`);
}

/** What an error means to the caller; undefined where it is our own fault, which the log tells. */
export function problemOf(error: unknown): HttpProblem | undefined {
  if (error instanceof HttpProblem) return error;
  if (error instanceof SluiceError) {
    if (error.code.startsWith("INVALID_")) return new HttpProblem(400, "Bad Request", error.message);
    return new HttpProblem(503, "Temporary reduced capacity", "The store did not decide; try again.");
  }
  const { statusCode, code, message, validation } = error as FastifyError;
  if (validation) return new HttpProblem(400, "Bad Request", message);
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new HttpProblem(413, "Content Too Large", message);
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
    return new HttpProblem(415, "Unsupported Media Type", "Send the body as application/json.");
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new HttpProblem(statusCode, "Bad Request", message);
  }
  return undefined;
}
