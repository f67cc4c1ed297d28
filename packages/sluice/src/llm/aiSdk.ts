import type { Subject } from "./amounts.js";
import type { Budget } from "./budget.js";
import { type HookOptions, type HookSubject, learnFrom, quietly, resolveSubject } from "./hook.js";
import type { BudgetReservation } from "./reservation.js";
import { settledStream } from "./stream.js";
import { StreamTally } from "./tally.js";
import { readUsage } from "./usage.js";

/** What is needed of the AI SDK's types (specification v3), so that the SDK itself is not. */
interface CallOptions {
  readonly prompt: unknown;
  readonly tools?: unknown;
  readonly maxOutputTokens?: number | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

interface Model {
  readonly provider: string;
  readonly modelId: string;
}

interface Answer {
  readonly response?: { readonly headers?: Readonly<Record<string, string>> } | undefined;
}

interface GenerateResult extends Answer {
  readonly usage: unknown;
}

interface StreamResult<Part> extends Answer {
  readonly stream: ReadableStream<Part>;
}

interface StreamPart {
  readonly type: string;
}

/** A `LanguageModelV3Middleware` for `wrapLanguageModel`. */
export interface AiSdkMiddleware {
  readonly specificationVersion: "v3";
  wrapGenerate<Result extends GenerateResult>(options: {
    doGenerate(): PromiseLike<Result>;
    readonly params: CallOptions;
    readonly model: Model;
  }): Promise<Result>;
  wrapStream<Part extends StreamPart, Result extends StreamResult<Part>>(options: {
    doStream(): PromiseLike<Result & StreamResult<Part>>;
    readonly params: CallOptions;
    readonly model: Model;
  }): Promise<Result>;
}

/** Reserves before each call of a model and settles after it: the usage of the result, or of the finish part. */
export function aiSdkMiddleware(
  budget: Budget,
  hookSubject: HookSubject,
  options: HookOptions,
): AiSdkMiddleware {
  async function reserve(params: CallOptions, model: Model) {
    const subject: Subject = {
      model: model.modelId,
      upstream: options.upstream ?? `${model.provider}/${model.modelId}`,
      input: { prompt: params.prompt, tools: params.tools },
      outputTokens: params.maxOutputTokens,
      ...resolveSubject(hookSubject),
    };
    const { abortSignal: signal } = params;
    const { timeoutMs, priority } = options;
    const reservation = await budget.reserve(subject, {
      ...(signal && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(priority !== undefined && { priority }),
    });
    return { subject, reservation };
  }

  /** Makes the call; where it fails, gives everything back, and pauses the upstream that refused it. */
  async function call<Result extends Answer>(
    subject: Subject,
    reservation: BudgetReservation,
    make: () => PromiseLike<Result>,
  ): Promise<Result> {
    try {
      const result = await make();
      await learn(subject, 200, result.response?.headers);
      return result;
    } catch (error) {
      const { statusCode, responseHeaders } = error as { statusCode?: number; responseHeaders?: Headers };
      if (statusCode !== undefined) await learn(subject, statusCode, responseHeaders);
      await quietly(options, () => reservation.cancel());
      throw error;
    }
  }

  async function learn(subject: Subject, status: number, headers: Headers | undefined): Promise<void> {
    await learnFrom(budget, subject, options, status, (name) => headers?.[name]);
  }

  return {
    specificationVersion: "v3",

    async wrapGenerate({ doGenerate, params, model }) {
      const { subject, reservation } = await reserve(params, model);
      const result = await call(subject, reservation, doGenerate);
      const usage = readUsage(result.usage);
      if (usage === undefined) options.onUnknownUsage?.(result);
      await quietly(options, () => reservation.settle(usage));
      return result;
    },

    async wrapStream({ doStream, params, model }) {
      const { subject, reservation } = await reserve(params, model);
      const result = await call(subject, reservation, doStream);
      const tally = new StreamTally();
      const stream = settledStream(result.stream, reservation, tally, options, (part) => {
        if (part === undefined) return [];
        const { type, delta, usage } = part as { type: string; delta?: unknown; usage?: unknown };
        if (type === "finish") tally.add({ usage: readUsage(usage) });
        else tally.addText(delta);
        return [part];
      });
      return { ...result, stream };
    },
  };
}

type Headers = Readonly<Record<string, string>>;
