import { writeAddress } from "./address.js";
import type { RunningServer } from "./server.js";

/** What `npm start` shows: what runs, and three commands that work as they stand. */
export function greeting({ http, grpc, store }: RunningServer): string {
  const base = `http://${writeAddress(http)}`;
  return `
  Sluice is listening on ${base}, counting in ${store}.${grpc ? `\n  Envoy can ask it at ${writeAddress(grpc)}.` : ""}

  Take one of 100 per minute:
    curl -s ${base}/v1/limiters/api/acquire -H 'content-type: application/json' -d '{"key":"you"}'

  See what is counted for you:
    curl -s ${base}/v1/limiters/api/keys/you

  Decide many at once:
    curl -s ${base}/v1/batch -H 'content-type: application/json' -d '{"decisions":[{"limiter":"api","key":"you"},{"limiter":"api","key":"me","cost":5}]}'

  All endpoints: ${base}/openapi.json    Your own limits: sluice serve --config limits.yaml
`;
}
