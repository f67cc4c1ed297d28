import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the server answers next. */
export interface Reply {
  readonly text?: string;
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  /** Of the input: read from the cache. */
  readonly cachedTokens?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Stops a stream after this many pieces of text, until the client hangs up. */
  readonly hangAfter?: number;
  /** Answers in a shape that nobody knows. */
  readonly isOdd?: boolean;
}

export interface LlmServer {
  readonly url: string;
  /** The bodies of the requests so far. */
  readonly requests: readonly Readonly<Record<string, unknown>>[];
  reply(reply: Reply): void;
  stop(): Promise<void>;
}

type Body = Readonly<Record<string, unknown>>;
type Told = Required<Pick<Reply, "text" | "inputTokens" | "outputTokens" | "cachedTokens">> & Reply;

/** Speaks the shapes of OpenAI (chat and responses), Azure and Anthropic, as JSON and as server-sent events. */
export async function startLlmServer(): Promise<LlmServer> {
  const requests: Body[] = [];
  let next: Reply = {};

  const server = createServer(async (request, response) => {
    const body: Body = JSON.parse(await textOf(request));
    requests.push(body);
    const told: Told = {
      text: "one two three four",
      inputTokens: 20,
      outputTokens: 10,
      cachedTokens: 0,
      ...next,
    };
    const { status = 200, headers = {} } = told;
    if (status !== 200)
      return sendJson(response, status, headers, { error: { message: "refused", type: "e" } });
    const shape = shapeOf(request.url ?? "");
    if (body.stream !== true) {
      return sendJson(response, 200, headers, told.isOdd ? odd(told, shape) : shape.whole(body, told));
    }
    response.writeHead(200, { "content-type": "text/event-stream", ...headers });
    const pieces = told.text.split(/(?<= )/);
    for (const event of shape.before(body, told)) response.write(event);
    for (const [n, piece] of pieces.entries()) {
      if (n === told.hangAfter) return;
      response.write(shape.piece(body, piece));
    }
    for (const event of shape.after(body, told)) response.write(event);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    reply(reply) {
      next = reply;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Shape {
  whole(body: Body, told: Told): Body;
  before(body: Body, told: Told): string[];
  piece(body: Body, text: string): string;
  after(body: Body, told: Told): string[];
}

function shapeOf(path: string): Shape {
  if (path.includes("/chat/completions")) return chat;
  return path.includes("/messages") ? anthropic : responses;
}

const event = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const named = (data: { type: string } & Body) => `event: ${data.type}\n${event(data)}`;

const chatUsage = ({ inputTokens, outputTokens, cachedTokens }: Told) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens },
});
const chunk = ({ model }: Body, rest: Body) =>
  event({ id: "c", object: "chat.completion.chunk", created: 1, model: model ?? "m", ...rest });
const chat: Shape = {
  whole: ({ model }, told) => ({
    id: "c",
    object: "chat.completion",
    created: 1,
    model: model ?? "m",
    choices: [{ index: 0, message: { role: "assistant", content: told.text }, finish_reason: "stop" }],
    usage: chatUsage(told),
  }),
  before: (body) => [
    chunk(body, { choices: [{ index: 0, delta: { role: "assistant" }, finish_reason: null }] }),
  ],
  piece: (body, content) => chunk(body, { choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
  after: (body, told) => {
    const { include_usage } = (body.stream_options ?? {}) as Body;
    return [
      chunk(body, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
      ...(include_usage ? [chunk(body, { choices: [], usage: chatUsage(told) })] : []),
      "data: [DONE]\n\n",
    ];
  },
};

const response = ({ model }: Body, told: Told | undefined) => ({
  id: "r",
  object: "response",
  created_at: 1,
  model,
  status: told ? "completed" : "in_progress",
  output: told
    ? [{ type: "message", id: "m", role: "assistant", content: [{ type: "output_text", text: told.text }] }]
    : [],
  usage: told && {
    input_tokens: told.inputTokens,
    output_tokens: told.outputTokens,
    total_tokens: told.inputTokens + told.outputTokens,
    input_tokens_details: { cached_tokens: told.cachedTokens },
  },
});
const responses: Shape = {
  whole: response,
  before: (body) => [named({ type: "response.created", response: response(body, undefined) })],
  piece: (_, delta) => named({ type: "response.output_text.delta", delta }),
  after: (body, told) => [named({ type: "response.completed", response: response(body, told) })],
};

const anthropicUsage = ({ inputTokens, cachedTokens }: Told, output_tokens: number) => ({
  input_tokens: inputTokens - cachedTokens,
  cache_read_input_tokens: cachedTokens,
  cache_creation_input_tokens: 0,
  output_tokens,
});
const message = ({ model }: Body, content: unknown[], usage: Body) => ({
  id: "m",
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason: content.length > 0 ? "end_turn" : null,
  stop_sequence: null,
  usage,
});
const anthropic: Shape = {
  whole: (body, told) =>
    message(body, [{ type: "text", text: told.text }], anthropicUsage(told, told.outputTokens)),
  before: (body, told) => [
    named({ type: "message_start", message: message(body, [], anthropicUsage(told, 1)) }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  ],
  piece: (_, text) => named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  after: (_, { outputTokens }) => [
    named({ type: "content_block_stop", index: 0 }),
    named({
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: outputTokens },
    }),
    named({ type: "message_stop" }),
  ],
};

/** The right answer, with its usage where nobody has ever looked for it. */
function odd(told: Told, shape: Shape): Body {
  const { usage: _, ...rest } = shape.whole({}, told);
  return { ...rest, metering: { spent: told.outputTokens } };
}

function sendJson(response: ServerResponse, status: number, headers: Reply["headers"], body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) text += part;
  return text;
}
