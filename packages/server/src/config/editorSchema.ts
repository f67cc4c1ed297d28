import { z } from "zod";
import { envoySchema } from "./envoySchema.js";
import { limitsSchema } from "./schema.js";

/** What editors complete and check limits files by, as JSON Schema. */
export function editorSchemas(): Readonly<Record<string, object>> {
  return {
    "limits.schema.json": {
      title: "Limits of Sluice",
      ...z.toJSONSchema(limitsSchema, { io: "input" }),
    },
    "envoy.schema.json": {
      title: "Limits of envoyproxy/ratelimit, as Sluice takes them",
      ...z.toJSONSchema(envoySchema, { io: "input" }),
    },
  };
}
