import type { LimiterConfig, Outage, Settings, Tiers } from "./configuration.js";
import { milliseconds } from "./durations.js";
import { buildRule } from "./rules.js";
import type { LimitsFile, OutageInput, TiersInput } from "./schema.js";

/** The limiters of a file that the schema has let through. */
export function buildLimiters(content: LimitsFile, defaults: Settings): LimiterConfig[] {
  return Object.entries(content.limiters ?? {}).map(([name, input]) => {
    const { description, key, partition } = input;
    const rules = input.rules.map(({ shadow = input.shadow ?? false, ...rule }) => ({
      shadow,
      rule: buildRule(rule),
    }));
    const tiers = tiersOf(input.tiers ?? defaults.tiers);
    return {
      name,
      rules: rules.filter(({ shadow }) => !shadow).map(({ rule }) => rule),
      shadowRules: rules.filter(({ shadow }) => shadow).map(({ rule }) => rule),
      outage: outageOf(input.outage ?? defaults.outage),
      ...(description !== undefined && { description }),
      ...(key !== undefined && { key }),
      ...(partition !== undefined && { partition }),
      ...(tiers && { tiers }),
    };
  });
}

export function outageOf(input: OutageInput | undefined): Outage {
  if (typeof input === "object") {
    const { policy, deadline, instances } = input;
    return { policy, deadlineMs: milliseconds(deadline), instances };
  }
  return { policy: input ?? "open", deadlineMs: 50, instances: 1 };
}

function tiersOf(input: TiersInput | undefined): Tiers | undefined {
  if (input === undefined || input === false) return undefined;
  if (input === true) return { leases: false, staleMs: 1000 };
  return { leases: input.leases, staleMs: milliseconds(input.stale) };
}
