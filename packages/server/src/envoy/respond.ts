import type { RuleDecision } from "sluice";
import type { Unit } from "../config/envoySchema.js";
import type { PlacedLimit } from "./descriptors.js";
import type { DescriptorStatus, RateLimitResponse } from "./messages.js";

/** A descriptor's limit, if it fell under one, and what was decided, if that is counted. */
export interface Settled {
  readonly match: PlacedLimit | undefined;
  readonly decision?: RuleDecision;
}

const MOST = 4_294_967_295;
/** Durations of the protocol reach further than this, but nobody waits longer. */
const LONGEST_MS = 10 * 366 * 86_400_000;

/** One status per descriptor, in order; over the limit when one that can refuse is. */
export function respond(settled: readonly Settled[], passes: boolean): RateLimitResponse {
  const statuses = settled.map(statusOf);
  if (passes) return { overallCode: "OK", statuses };
  return { overallCode: "OVER_LIMIT", statuses, responseHeadersToAdd: refusalHeaders(settled) };
}

function statusOf({ match, decision }: Settled): DescriptorStatus {
  if (match === undefined) return { code: "OK" };
  const { limit, trial } = match;
  if (limit.unlimited) return { code: "OK", limitRemaining: MOST };
  const currentLimit = {
    ...(limit.name !== "" && { name: limit.name }),
    requestsPerUnit: limit.requestsPerUnit,
    unit: limit.unit.toUpperCase() as Uppercase<Unit>,
  };
  const isOver = decision === undefined ? limit.requestsPerUnit === 0 : !decision.allowed;
  const code = isOver && trial !== "shadow" ? "OVER_LIMIT" : "OK";
  if (decision === undefined) return { code, currentLimit };
  const { retryAfterMs, resetAfterMs, remaining } = decision;
  const ms = Math.min(isOver && Number.isFinite(retryAfterMs) ? retryAfterMs : resetAfterMs, LONGEST_MS);
  return {
    code,
    currentLimit,
    limitRemaining: Math.max(0, Math.min(remaining, MOST)),
    durationUntilReset: { seconds: Math.floor(ms / 1000), nanos: (ms % 1000) * 1_000_000 },
  };
}

/** When to come again, and whether it was the store's outage that refused. */
function refusalHeaders(settled: readonly Settled[]): { key: string; value: string }[] {
  const decisions = settled.flatMap(({ match, decision }) =>
    decision && match?.trial === undefined && !decision.allowed ? [decision] : [],
  );
  const waitMs = Math.max(0, ...decisions.map(({ retryAfterMs }) => retryAfterMs));
  return [
    ...(waitMs > 0 && Number.isFinite(waitMs)
      ? [{ key: "retry-after", value: String(Math.ceil(waitMs / 1000)) }]
      : []),
    ...(decisions.some(({ degraded }) => degraded === "closed")
      ? [{ key: "x-sluice-degraded", value: "closed" }]
      : []),
  ];
}
