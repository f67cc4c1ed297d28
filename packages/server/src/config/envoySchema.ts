// The shape of envoyproxy/ratelimit's files, as they are, with `algorithm` beside them.

import type { AlgorithmName } from "sluice";
import { z } from "zod";
import { complaintAbout, type WrittenRule } from "./rules.js";
import { algorithmSchema } from "./schema.js";
import { flag, mustBe, record, text, wholeNumber } from "./words.js";

export const UNITS = ["second", "minute", "hour", "day", "week", "month", "year"] as const;
export type Unit = (typeof UNITS)[number];

const DAY = 86_400_000;

/** Units as sliding windows: a month is 30 days and a year 365, as envoyproxy/ratelimit counts them. */
export const UNIT_MS: Readonly<Record<Unit, number>> = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

const UNIT = mustBe(`one of ${UNITS.join(", ")}`);
const unit = z
  .string(UNIT)
  .regex(new RegExp(`^(${UNITS.join("|")})$`, "i"), UNIT)
  .transform((written) => written.toLowerCase() as Unit);

const rateLimit = record("a limit such as { unit: minute, requests_per_unit: 10 }", {
  unit: unit.optional(),
  requests_per_unit: wholeNumber(0, 4_294_967_295).optional(),
  unlimited: flag.optional(),
  name: z.string(mustBe("a name")).optional(),
  replaces: z
    .array(
      record("{ name }", { name: text("the name of another limit") }),
      mustBe("a list such as - name: other"),
    )
    .optional(),
  algorithm: algorithmSchema.optional(),
  burst: wholeNumber(1).optional(),
  cells: wholeNumber(1, 1000).optional(),
}).superRefine((limit, context) => {
  const fail = (path: PropertyKey[], message: string) => context.addIssue({ code: "custom", path, message });
  if (limit.unlimited) {
    if (limit.unit !== undefined)
      fail(["unit"], "must not stand beside unlimited: true; leave one of them out");
    return;
  }
  if (limit.unit === undefined)
    fail([], `has no unit: it must be one of ${UNITS.join(", ")}, or unlimited: true`);
  if (limit.requests_per_unit === undefined)
    fail([], "has no requests_per_unit: a whole number of at least 0");
  limit.replaces?.forEach(({ name }, r) => {
    if (name === limit.name)
      fail(["replaces", r, "name"], "is this limit's own name; a limit cannot replace itself");
  });
});

/** The rule that a limit stands for; the file's algorithm holds where the limit has none of its own. */
export function writtenRule(limit: EnvoyLimit, algorithm: AlgorithmName): WrittenRule {
  const { unit = "second", requests_per_unit, cells, burst } = limit;
  return {
    algorithm: limit.algorithm ?? algorithm,
    limit: requests_per_unit,
    window: UNIT_MS[unit],
    name: unit,
    cells,
    burst,
  };
}

/** No request has more entries in a descriptor. */
const DEEPEST = 16;

// Some files write values as numbers or booleans; the protocol has text alone.
const value = z.union([z.string(), z.number(), z.boolean()], mustBe("text")).transform(String);

export interface EnvoyDescriptor {
  readonly key: string;
  readonly value?: string | undefined;
  readonly rate_limit?: EnvoyLimit | undefined;
  readonly shadow_mode?: boolean | undefined;
  readonly quota_mode?: boolean | undefined;
  readonly share_threshold?: boolean | undefined;
  readonly descriptors?: readonly EnvoyDescriptor[] | null | undefined;
}

const descriptor: z.ZodType<EnvoyDescriptor> = record("a descriptor such as { key: user, rate_limit: … }", {
  key: text("a descriptor's key"),
  value: value.optional(),
  rate_limit: rateLimit.optional(),
  shadow_mode: flag.optional().describe("Decided and counted apart, never refused."),
  quota_mode: flag.optional().describe("Its own status says OVER_LIMIT; the request passes."),
  share_threshold: flag.optional().describe("All values of the wildcard share one count."),
  // Taken as they are: metrics here are by rule and never carry a value.
  detailed_metric: flag.optional(),
  value_to_metric: flag.optional(),
  metadata: z.unknown().optional(),
  get descriptors(): z.ZodOptional<z.ZodNullable<z.ZodArray<z.ZodType<EnvoyDescriptor>>>> {
    return z.array(descriptor, mustBe("a list of descriptors")).nullable().optional();
  },
});

export const envoySchema = record("a mapping with domain and descriptors", {
  domain: text("the domain that Envoy's requests name"),
  algorithm: algorithmSchema.optional(),
  descriptors: z.array(descriptor, mustBe("a list of descriptors")).nullish(),
}).superRefine(({ algorithm = "slidingLog", descriptors }, context) => {
  checkLevel(descriptors ?? [], algorithm, ["descriptors"], 1, (path, message) =>
    context.addIssue({ code: "custom", path, message }),
  );
});

function checkLevel(
  level: readonly EnvoyDescriptor[],
  algorithm: AlgorithmName,
  path: PropertyKey[],
  depth: number,
  fail: (path: PropertyKey[], message: string) => void,
): void {
  const seen = new Set<string>();
  if (depth > DEEPEST) fail(path, `is nested more than ${DEEPEST} levels deep`);
  else {
    level.forEach(({ key, value, rate_limit: limit, share_threshold, descriptors }, d) => {
      const composite = JSON.stringify([key, value ?? ""]);
      const shown = value ? `${key}: ${value}` : key;
      if (seen.has(composite)) fail([...path, d, value ? "value" : "key"], `is a duplicate of (${shown})`);
      seen.add(composite);
      if (share_threshold && !value?.includes("*")) {
        fail([...path, d, "share_threshold"], "needs a value with a wildcard, such as value: foo*");
      }
      if (limit?.unit !== undefined && UNIT_MS[limit.unit] && limit.requests_per_unit) {
        const complaint = complaintAbout(writtenRule(limit, algorithm));
        if (complaint) fail([...path, d, "rate_limit"], complaint);
      }
      checkLevel(descriptors ?? [], algorithm, [...path, d, "descriptors"], depth + 1, fail);
    });
  }
}

export type EnvoyFile = z.output<typeof envoySchema>;
export type EnvoyLimit = z.output<typeof rateLimit>;
