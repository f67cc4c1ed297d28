// How a verdict is carried out on Node's own request and response, which most frameworks pass through.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Guard, type GuardDecision, judge, type Platform, type Verdict } from "./guard.js";
import type { Answer } from "./options.js";
import type { Refusal } from "./refusal.js";

/** A request of Node's with the decision that guards left on it. */
export type GuardedMessage = IncomingMessage & { rateLimit?: GuardDecision };

export const nodePlatform: Platform<IncomingMessage> = {
  peer: ({ socket }) => socket.remoteAddress ?? (socket.destroyed ? "gone" : undefined),
  header: ({ headers }, name) => headers[name]?.toString(),
};

/** Judges a request and carries the verdict out, as `judge` says. */
export function guardMessage<Request extends GuardedMessage>(
  guard: Guard<Request>,
  request: Request,
  response: ServerResponse,
  pass: () => void,
  fail: (error: unknown) => void,
): void {
  judge(guard, request, request.rateLimit, (verdict) => obey(verdict, request, response), pass, fail);
}

/** Whether the request passes; if not, its answer is sent. Settling is arranged for. */
function obey(verdict: Verdict | undefined, request: GuardedMessage, response: ServerResponse): boolean {
  if (verdict === undefined) return true;
  const { decision, expose, refusal, settle } = verdict;
  request.rateLimit = decision;
  if (settle) settleAtEnd(request, response, settle);
  // Someone may have answered while the store was asked: a timeout, or a client that has gone.
  if (!response.headersSent) {
    for (const [name, value] of decision.headers) response.setHeader(name, value);
    if (expose) response.appendHeader("Access-Control-Expose-Headers", expose);
    if (refusal) send(response, refusal);
  }
  return refusal === undefined;
}

/** Sends a refusal as the whole answer. */
export function send(response: ServerResponse, { status, headers, body }: Refusal): void {
  response.statusCode = status;
  for (const name in headers) response.setHeader(name, headers[name] as string);
  response.end(body);
}

/** Settles once: when the answer is sent, or when its client is gone, however that shows. */
export function settleAtEnd(
  request: IncomingMessage,
  response: ServerResponse,
  settle: (answer: Answer) => void,
): void {
  const { socket } = request;
  const sent = countBytes(response);
  let isFinished = false;
  const end = () => {
    socket.off("close", end);
    settle({
      status: response.headersSent ? response.statusCode : 499,
      bytes: request.method === "HEAD" ? 0 : sent(),
      aborted: !isFinished,
    });
  };
  if (response.destroyed || socket.destroyed) {
    end();
    return;
  }
  response.once("finish", () => {
    isFinished = !socket.destroyed; // what a lost connection never sent counts as "finished", too
  });
  response.once("close", end);
  // A pipelined response has no socket until its turn comes, and so never hears of its end.
  if (response.socket === null) socket.once("close", end);
}

function countBytes(response: ServerResponse): () => number {
  let bytes = 0;
  for (const name of ["write", "end"] as const) {
    const send = response[name];
    response[name] = function (this: ServerResponse, chunk: unknown, encoding: unknown, ...rest: unknown[]) {
      if (typeof chunk === "string" || chunk instanceof Uint8Array) {
        bytes += Buffer.byteLength(
          chunk,
          typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8",
        );
      }
      return Reflect.apply(send, this, [chunk, encoding, ...rest]);
    } as typeof response.write & typeof response.end;
  }
  return () => bytes;
}
