// How a verdict is carried out on the Request and Response of the web, wherever those are at home.
import type { Verdict } from "./guard.js";
import type { Answer } from "./options.js";

/** The whole answer to a refused request. */
export function refusedResponse({ decision, expose, refusal }: Verdict): Response {
  const { status = 429, headers, body } = refusal ?? {};
  return withVerdictHeaders(
    new Response(body ?? null, { status, headers: headers ?? {} }),
    decision.headers,
    expose,
  );
}

/** The same response with the headers set; one that cannot be changed is copied. */
export function withVerdictHeaders(
  response: Response,
  headers: Verdict["decision"]["headers"],
  expose: string | undefined,
): Response {
  try {
    for (const [name, value] of headers) response.headers.set(name, value);
    if (expose !== undefined) response.headers.append("Access-Control-Expose-Headers", expose);
    return response;
  } catch (error) {
    const copy = new Response(response.body, response);
    if (copy.headers === response.headers) throw error;
    return withVerdictHeaders(copy, headers, expose);
  }
}

/** Settles once: when the response's body is read to its end, or when its reader or its client is gone. */
export interface Ending {
  /** The response to send in place of this one. */
  watch(response: Response): Response;
  /** There will be no response, for an error is thrown. */
  failed(): void;
}

/** Watches a request from before its handler runs, so that a client that leaves meanwhile settles too. */
export function endingOf(request: Request, settle: (answer: Answer) => void): Ending {
  let status = 499;
  let bytes = 0;
  const end = (aborted: boolean) => {
    request.signal?.removeEventListener("abort", leave);
    settle({ status, bytes, aborted });
  };
  const leave = () => end(true);
  if (request.signal?.aborted) leave();
  else request.signal?.addEventListener("abort", leave);
  return {
    watch(response) {
      status = response.status;
      if (response.body === null || request.method === "HEAD") {
        end(false);
        return response;
      }
      const reader = response.body.getReader();
      // Nothing is read ahead, so that the bytes counted are bytes asked for.
      const counted = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            try {
              const { done, value } = await reader.read();
              if (value) {
                bytes += value.byteLength;
                controller.enqueue(value);
              }
              if (!done) return;
              end(false);
              controller.close();
            } catch (error) {
              end(true);
              controller.error(error);
            }
          },
          cancel(reason) {
            end(true);
            return reader.cancel(reason);
          },
        },
        { highWaterMark: 0 },
      );
      return new Response(counted, response);
    },
    failed() {
      status = 500;
      end(false);
    },
  };
}
