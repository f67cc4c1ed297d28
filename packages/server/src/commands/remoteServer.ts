import type { Key, Rule } from "sluice";
import type { RateLimitRequest, RateLimitResponse } from "../envoy/messages.js";
import type { Answer } from "../limits/answer.js";

interface Listed {
  readonly limiters: readonly {
    readonly name: string;
    readonly rules: readonly Rule[];
    readonly key?: string | Readonly<Record<string, string>>;
  }[];
  readonly domains: readonly string[];
}

/** A running server, asked over HTTP with the token of the environment. */
export class RemoteServer {
  readonly #base: string;

  constructor(base: string) {
    this.#base = base.replace(/\/+$/, "");
  }

  limiters(): Promise<Listed> {
    return this.#ask("/v1/limiters");
  }

  async decide(limiter: string, verb: "acquire" | "peek", key: Key, cost: number): Promise<Answer> {
    return this.#ask(`/v1/limiters/${encodeURIComponent(limiter)}/${verb}`, { key, cost });
  }

  shouldRateLimit(request: RateLimitRequest): Promise<RateLimitResponse> {
    return this.#ask("/json", request, [429]);
  }

  async #ask<T>(path: string, body?: object, fine: readonly number[] = []): Promise<T> {
    const token = process.env.SLUICE_TOKEN;
    const headers = {
      ...(body && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const post = body && { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(this.#base + path, { headers, ...post }).catch((error: Error) => {
      throw new Error(
        `${this.#base} does not answer: ${(error.cause as Error | undefined)?.message ?? error.message}`,
      );
    });
    const text = await response.text();
    if (response.ok || fine.includes(response.status)) return JSON.parse(text) as T;
    throw new Error(`${this.#base} answered ${response.status}: ${detailOf(text)}`);
  }
}

function detailOf(text: string): string {
  try {
    return String((JSON.parse(text) as { detail?: unknown }).detail ?? text);
  } catch {
    return text.slice(0, 200);
  }
}
