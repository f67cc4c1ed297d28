// The bodies and answers of the endpoints, as JSON Schema: requests are held to them, /openapi.json shows them.

export function keySchema(keyLength: number) {
  const part = { type: "string", minLength: 1, maxLength: keyLength } as const;
  return {
    description: "Who is limited: text, or a record of parts of which rules may count by some.",
    anyOf: [
      part,
      {
        type: "object",
        minProperties: 1,
        maxProperties: 32,
        propertyNames: { maxLength: 64 },
        additionalProperties: { anyOf: [part, { type: "number" }] },
      },
    ],
  };
}

const cost = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;

export function decisionBody(keyLength: number) {
  return {
    type: "object",
    required: ["key"],
    additionalProperties: false,
    properties: { key: keySchema(keyLength), cost: { ...cost, description: "1 unless told." } },
  };
}

export function batchBody(keyLength: number, most: number) {
  return {
    type: "object",
    required: ["decisions"],
    additionalProperties: false,
    properties: {
      decisions: {
        type: "array",
        maxItems: most,
        items: {
          type: "object",
          required: ["limiter", "key"],
          additionalProperties: false,
          properties: { limiter: { type: "string" }, key: keySchema(keyLength), cost },
        },
      },
    },
  };
}

export const settleBody = {
  type: "object",
  required: ["cost"],
  additionalProperties: false,
  properties: {
    cost: { ...cost, description: "What it really cost; more becomes a debt, less is given back." },
  },
};

export const nameParams = {
  type: "object",
  properties: { name: { type: "string", description: "The limiter's name." } },
};

export const idParams = { type: "object", properties: { id: { type: "string", maxLength: 64 } } };

export const keyParams = {
  type: "object",
  properties: {
    name: { type: "string" },
    key: {
      type: "string",
      description: 'The key, percent-encoded; for a limiter with parts, as JSON: {"user":"42"}.',
    },
  },
};

const ruleFields = {
  allowed: { type: "boolean" },
  rule: { type: "string", description: "The rule's name; of a decision, the rule that bound it." },
  limit: { type: "integer" },
  remaining: { type: "integer", description: "The largest cost that would be admitted right after this." },
  retryAfterMs: {
    type: ["integer", "null"],
    description: "When the same cost fits, with no other traffic; 0 when allowed, null when it never can.",
  },
  resetAfterMs: { type: "integer", description: "When nothing would be counted any more." },
} as const;

const rules = { type: "array", items: { type: "object", properties: ruleFields } } as const;
const degraded = {
  type: "string",
  enum: ["open", "closed", "local"],
  description: "Set when the store was out and this policy answered.",
} as const;

export const briefAnswer = { type: "object", properties: { ...ruleFields, degraded } } as const;

export const answer = {
  type: "object",
  properties: {
    ...ruleFields,
    degraded,
    rules,
    shadow: { ...rules, description: "What limits in trial would have said; they refuse nothing." },
  },
} as const;

export const reservationAnswer = {
  type: "object",
  properties: {
    id: { type: ["string", "null"], description: "For /v1/reservations/:id; null when denied." },
    expiresAfterMs: { type: "integer", description: "After this the cost has left the window by itself." },
    ...answer.properties,
  },
} as const;

export const batchAnswer = {
  type: "object",
  properties: {
    results: {
      type: "array",
      description: "One per decision, in order.",
      items: {
        anyOf: [
          briefAnswer,
          {
            type: "object",
            properties: {
              error: {
                type: "object",
                properties: { status: { type: "integer" }, detail: { type: "string" } },
              },
            },
          },
        ],
      },
    },
  },
} as const;

export const statusAnswer = {
  type: "object",
  properties: {
    rules: {
      type: "array",
      items: {
        type: "object",
        properties: {
          rule: { type: "string" },
          shadow: { type: "boolean" },
          count: { type: "integer" },
          limit: { type: "integer" },
          remaining: { type: "integer" },
          oldestAt: { type: ["integer", "null"] },
          newestAt: { type: ["integer", "null"] },
          resetAfterMs: { type: "integer" },
        },
      },
    },
  },
} as const;

export const problem = {
  description: "application/problem+json",
  type: "object",
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
  },
} as const;
