// Stands in for "sluice/http" until that is there.
import type { Decision, Rule } from "sluice";

export type HeaderFormat = "draft-11" | "draft-7" | "draft-6" | "legacy" | false;

export function rateLimitHeaders(
  format: HeaderFormat,
  decision: Decision,
  rules: readonly Rule[],
): readonly (readonly [string, string])[] {
  if (format === false) return [];
  return [
    [
      "RateLimit-Policy",
      rules.map(({ name, limit, window }) => `"${name}";q=${limit};w=${Math.ceil(window / 1000)}`).join(", "),
    ],
    [
      "RateLimit",
      decision.rules
        .map(
          ({ rule, remaining, resetAfterMs }) =>
            `"${rule}";r=${remaining};t=${Math.ceil(resetAfterMs / 1000)}`,
        )
        .join(", "),
    ],
  ];
}

export function retryAfterSeconds({ retryAfterMs }: Decision): number | undefined {
  return Number.isFinite(retryAfterMs) ? Math.ceil(retryAfterMs / 1000) : undefined;
}

export function refusalOf(decision: Decision, _rules: readonly Rule[]) {
  const headers: Record<string, string> = { "Content-Type": "application/problem+json" };
  const status = decision.degraded === "closed" ? 503 : 429;
  return { status, headers, body: JSON.stringify({ title: "Quota exceeded", status }) };
}

export function clientReader<Request>(
  _options: { trustProxy: number | readonly string[] },
  read: (request: Request, name: string) => string | undefined,
): (request: Request, peer: string | undefined) => string | undefined {
  return (request, peer) => read(request, "x-forwarded-for")?.split(",").at(-1)?.trim() ?? peer;
}
