// The shape of a limits file of ours. Editors get the same as JSON Schema: schema/limits.schema.json.
import { z } from "zod";
import { compileTemplate } from "../limits/template.js";
import { buildRule, complaintAbout } from "./rules.js";
import { duration, flag, mustBe, oneOf, record, text, wholeNumber } from "./words.js";

/** Names stand in URLs, headers, metrics and Redis keys. */
const NAME = mustBe("a name of 1 to 64 letters, digits or any of _ . -");
const name = z.string(NAME).regex(/^[\w.-]{1,64}$/, NAME);

const WINDOWS = [
  "slidingLog",
  "slidingCells",
  "slidingCounter",
  "fixedWindow",
  "tokenBucket",
  "leakyBucket",
] as const;

const rule = record("a rule such as { limit: 100, window: 1m }", {
  algorithm: oneOf(...WINDOWS, "concurrent")
    .default("slidingLog")
    .describe("How it counts; the exact sliding log unless told."),
  limit: wholeNumber(1).describe("How many units may pass per window; concurrent: how many at a time."),
  window: duration.optional().describe("Such as 250ms, 1s, 1m, 1h, 1d; for all but concurrent."),
  lease: duration
    .optional()
    .describe("For how long a reservation that is not settled is held; concurrent needs one."),
  name: text("a rule's name", 64)
    .optional()
    .describe("Shown in decisions, headers and metrics; by default the window."),
  by: z
    .array(text("the name of a key's part", 64), mustBe("a list of key parts, such as [user]"))
    .optional()
    .describe("Count by these parts of a record key alone."),
  layout: oneOf("compact", "zset").optional().describe("slidingLog: how Redis keeps the log."),
  cells: wholeNumber(1, 1000).optional().describe("slidingCells: into how many cells the window is cut."),
  mode: oneOf("strict", "weighted").optional().describe("slidingCells: never over, or interpolated."),
  burst: wholeNumber(1).optional().describe("tokenBucket, leakyBucket: how many units may pass at once."),
  shadow: flag.optional().describe("In trial: decided and counted apart, never refused."),
}).superRefine(({ shadow: _, ...rule }, context) => {
  const complaint = complaintAbout(rule);
  if (complaint) context.addIssue(complaint);
});

const policy = oneOf("open", "closed", "local").describe(
  "What answers while the store is out: everything passes, nothing passes, or a local share of the limit.",
);

const outage = z.union(
  [
    policy,
    record("an outage policy", {
      policy: policy.default("open"),
      deadline: duration.default("50ms").describe("How long a decision may take before the policy answers."),
      instances: wholeNumber(1, 10_000)
        .default(1)
        .describe("local: among how many servers the limit is divided."),
    }),
  ],
  mustBe("open, closed or local, or { policy, deadline, instances }"),
);

const tiers = z.union(
  [
    flag,
    record("tiers", {
      leases: flag
        .default(false)
        .describe("Take permits of hot keys in batches and spend them locally; then every server must."),
      stale: duration.default("1s").describe("For how long a refusal is believed without asking Redis."),
    }),
  ],
  mustBe("true, false or { leases, stale }"),
);

const KEY = 'a template such as "{ip}" or "{method} {path}", or a mapping of part names to templates';
const template = text(KEY).superRefine((written, context) => {
  const { problem } = compileTemplate(written);
  if (problem) context.addIssue(problem);
});

const limiter = record("a limiter such as { rules: [{ limit: 100, window: 1m }] }", {
  description: z.string(mustBe("text")).optional(),
  rules: z
    .array(rule, mustBe("a list of rules such as - { limit: 100, window: 1m }"))
    .min(1, mustBe("a list of at least one rule"))
    .max(64, mustBe("a list of at most 64 rules")),
  key: z
    .union([template, z.record(name, template)], mustBe(KEY))
    .optional()
    .describe(
      "For /v1/guard: whom a forwarded request counts for, from {ip}, {method}, {path}, {host}, {header:NAME}.",
    ),
  partition: name.optional().describe("Which part of record keys spreads them over a Redis Cluster."),
  outage: outage.optional(),
  tiers: tiers.optional(),
  shadow: flag.optional().describe("The whole limiter is in trial: counted apart, never refused."),
}).superRefine(({ rules, key, partition }, context) => {
  const fail = (path: PropertyKey[], message: string) => context.addIssue({ code: "custom", path, message });
  const names = rules.map(({ shadow: _, ...each }) => buildRule(each).name);
  names.forEach((each, r) => {
    if (names.indexOf(each) < r)
      fail(["rules", r], `is the second rule named "${each}"; give each its own name`);
  });
  if (key === undefined) return;
  const parts = typeof key === "object" ? Object.keys(key) : [];
  const listed = parts.length > 0 ? parts.join(", ") : "none, since it is one text";
  rules.forEach(({ by = [] }, r) => {
    const missing = by.filter((part) => !parts.includes(part));
    if (missing.length > 0) {
      fail(
        ["rules", r, "by"],
        `counts by ${missing.join(", ")}, which the key has not; the key's parts: ${listed}`,
      );
    }
  });
  if (partition !== undefined && !parts.includes(partition)) {
    fail(["partition"], `is not a part of the key; the key's parts: ${listed}`);
  }
});

const ADDRESS = mustBe("an address with a port, such as 127.0.0.1:8080 or [::1]:8080");
const address = z.string(ADDRESS).regex(/^(\[[\da-fA-F:.]+\]|[\w.-]+):\d{1,5}$/, ADDRESS);

const file = text("a path to a file", 4096);

const token = record("a token such as { name: ci, scope: admin, env: SLUICE_TOKEN }", {
  name,
  scope: oneOf("read", "decide", "admin")
    .default("decide")
    .describe("read: look; decide: also take and settle; admin: also reset keys."),
  env: text("the name of an environment variable", 256).optional(),
  file: file.optional(),
  sha256: z
    .string(mustBe("64 hexadecimal digits"))
    .regex(/^[\da-fA-F]{64}$/, mustBe("64 hexadecimal digits"))
    .optional()
    .describe("The SHA-256 of the token, where the token itself should not be here."),
}).refine(
  ({ env, file, sha256 }) => [env, file, sha256].filter((source) => source !== undefined).length === 1,
  "must have exactly one of env, file and sha256",
);

export const limitsSchema = record("a mapping with limiters", {
  limiters: z
    .record(name, limiter, mustBe("a mapping of names to limiters"))
    .optional()
    .describe("The limits, by name: all rules of a limiter must allow, and all are charged or none."),
  listen: record("{ http, grpc }", {
    http: address.optional(),
    grpc: z.union([address, z.literal(false)], ADDRESS).optional(),
  }).optional(),
  redis: record("{ url, prefix, cluster, tls }", {
    url: z
      .string(mustBe("a URL such as redis://localhost:6379"))
      .regex(/^rediss?:\/\/\S+$/, mustBe("a URL such as redis://localhost:6379"))
      .describe("redis://… or rediss://…; --redis and SLUICE_REDIS go before it."),
    prefix: text("a prefix", 64).optional(),
    cluster: flag.optional().describe("The URL is one node of a Redis Cluster."),
    tls: record("{ ca, cert, key, servername }", {
      ca: file.optional(),
      cert: file.optional(),
      key: file.optional(),
      servername: text("a host name").optional(),
    }).optional(),
  }).optional(),
  memory: record("{ maxKeys }", { maxKeys: wholeNumber(1, 10_000_000).optional() }).optional(),
  outage: outage
    .optional()
    .describe("For limiters and domains that have none of their own: open unless told."),
  tiers: tiers.optional().describe("For limiters that have none of their own: off unless told."),
  tokens: z.array(token, mustBe("a list of tokens")).max(100).optional(),
  tls: record("{ cert, key, clientCa }", {
    cert: file,
    key: file,
    clientCa: file.optional().describe("Clients must show a certificate of this authority."),
  }).optional(),
  trustProxy: z
    .union([wholeNumber(0, 32), z.array(text("a CIDR"))], mustBe("a number of proxies or a list of CIDRs"))
    .optional()
    .describe("The proxies before /v1/guard: 1 unless told, the one that asks."),
  headers: oneOf("draft-11", "draft-7", "draft-6", "legacy", "none").optional(),
  bounds: record("{ bodyBytes, keyLength, inFlight, reservations, connections }", {
    bodyBytes: wholeNumber(1024, 16_777_216).optional(),
    keyLength: wholeNumber(16, 16_384).optional(),
    inFlight: wholeNumber(1, 1_000_000).optional(),
    reservations: wholeNumber(1, 10_000_000).optional(),
    connections: wholeNumber(1, 1_000_000).optional(),
  }).optional(),
});

export type LimitsFile = z.output<typeof limitsSchema>;
export type OutageInput = z.output<typeof outage>;
export type TiersInput = z.output<typeof tiers>;
/** For protocols in which nobody gives back. */
export const algorithmSchema = oneOf(...WINDOWS);
