import type { Subject } from "./amounts.js";
import type { Budget } from "./budget.js";
import { type HookOptions, type HookSubject, learnFrom, quietly, resolveSubject } from "./hook.js";
import type { BudgetReservation } from "./reservation.js";
import { settledStream } from "./stream.js";
import { StreamTally } from "./tally.js";
import { readUsage } from "./usage.js";

export interface FetchOptions extends HookOptions {
  /** What really fetches: the global `fetch` unless told. */
  readonly fetch?: typeof globalThis.fetch;
}

type Body = Readonly<Record<string, unknown>>;

/**
 * A `fetch` that reserves before each model call and settles after it. What has no JSON body with a
 * prompt passes untouched. OpenAI's chat streams tell their usage only when asked: they are asked, and the
 * chunk that answers is kept from a caller who did not.
 */
export function limitedFetch(
  budget: Budget,
  hookSubject: HookSubject,
  options: FetchOptions,
): typeof globalThis.fetch {
  return async (resource, init) => {
    const send = options.fetch ?? globalThis.fetch;
    const url = new URL(resource instanceof Request ? resource.url : String(resource));
    const body = promptOf(init?.body);
    if (body === undefined) return send(resource, init);
    const subject = subjectOf(url, body, resolveSubject(hookSubject), options);
    const signal = init?.signal ?? undefined;
    const { timeoutMs, priority } = options;
    const reservation = await budget.reserve(subject, {
      ...(signal && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(priority !== undefined && { priority }),
    });
    const asks = isChatStream(url, body) && !asksForUsage(body);
    let response: Response;
    try {
      response = await send(resource, asks ? { ...init, body: JSON.stringify(asking(body)) } : init);
    } catch (error) {
      await quietly(options, () => reservation.cancel());
      throw error;
    }
    await learnFrom(budget, subject, options, response.status, (name) => response.headers.get(name));
    if (!response.ok || response.body === null) {
      await quietly(options, () => reservation.cancel());
      return response;
    }
    const isStream = response.headers.get("content-type")?.includes("text/event-stream");
    return isStream
      ? copyOf(response, events(response.body, reservation, options, asks))
      : copyOf(response, await settledText(response, reservation, options));
  };
}

function promptOf(body: unknown): Body | undefined {
  if (typeof body !== "string" || !body.startsWith("{")) return undefined;
  try {
    const parsed: Body = JSON.parse(body);
    return "messages" in parsed || "input" in parsed || "prompt" in parsed ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function subjectOf(url: URL, body: Body, who: Subject, options: FetchOptions): Subject {
  const deployment = /\/deployments\/([^/]+)\//.exec(url.pathname)?.[1];
  const named = typeof body.model === "string" && body.model !== "" ? body.model : undefined;
  const model = named ?? (deployment && decodeURIComponent(deployment));
  const most = body.max_completion_tokens ?? body.max_output_tokens ?? body.max_tokens;
  const answers = typeof body.n === "number" ? body.n : 1;
  const { messages, input, prompt, system, instructions, tools } = body;
  return {
    model,
    upstream: options.upstream ?? `${url.host}/${model ?? ""}`,
    input: { messages, input, prompt, system, instructions, tools },
    ...(typeof most === "number" && { outputTokens: Math.ceil(most * answers) }),
    ...who,
  };
}

function isChatStream(url: URL, body: Body): boolean {
  return body.stream === true && url.pathname.endsWith("/chat/completions");
}

function asksForUsage({ stream_options }: Body): boolean {
  return (stream_options as Body | undefined)?.include_usage === true;
}

function asking(body: Body): Body {
  return { ...body, stream_options: { ...(body.stream_options as Body | undefined), include_usage: true } };
}

async function settledText(
  response: Response,
  reservation: BudgetReservation,
  options: FetchOptions,
): Promise<string> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    // The answer was made and did not arrive: it is charged as it was reserved.
    await quietly(options, () => reservation.settle());
    throw error;
  }
  const parsed = parse(text);
  const usage = readUsage(parsed);
  if (usage === undefined) options.onUnknownUsage?.(parsed);
  await quietly(options, () => reservation.settle(usage));
  return text;
}

/** The events of a stream as they are, but for the one that only answers our question for the usage. */
function events(
  source: ReadableStream<Uint8Array>,
  reservation: BudgetReservation,
  options: FetchOptions,
  hidesUsage: boolean,
): ReadableStream<Uint8Array> {
  const tally = new StreamTally();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  return settledStream(source, reservation, tally, options, (chunk) => {
    rest += chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    const whole = rest.split(/(?<=\n\r?\n)/);
    rest = chunk === undefined || /\n\r?\n$/.test(rest) ? "" : (whole.pop() ?? "");
    const kept = whole.filter((event) => !(tally.add(parse(dataOf(event))) && hidesUsage)).join("");
    return kept === "" ? [] : [encoder.encode(kept)];
  });
}

function dataOf(event: string): string {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice("data:".length).trimStart()).join("\n");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The same response with another body, which is neither compressed nor of the length it had. */
function copyOf(response: Response, body: string | ReadableStream<Uint8Array>): Response {
  const { status, statusText, url } = response;
  const headers = new Headers(response.headers);
  headers.delete("content-encoding");
  headers.delete("content-length");
  return Object.defineProperty(new Response(body, { status, statusText, headers }), "url", { value: url });
}
