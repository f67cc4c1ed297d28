import type { MaybePromise } from "sluice";
import type { Catalog } from "../limits/catalog.js";
import { type RateLimitRequest, type RateLimitResponse, RequestError } from "./messages.js";

const MOST_DESCRIPTORS = 100;
const MOST_ENTRIES = 16;
const LONGEST_TEXT = 4096;

/** Decides a request of Envoy's protocol, or throws a `RequestError` where it breaks the protocol. */
export function shouldRateLimit(
  { domains }: Catalog,
  request: RateLimitRequest,
  withinMs: number,
): MaybePromise<RateLimitResponse> {
  check(request);
  if (domains.size === 0)
    throw new RequestError("No domain is configured: give --config a file with `domain:`.");
  const domain = domains.get(request.domain);
  if (domain) return domain.decide(request, withinMs);
  return { overallCode: "OK", statuses: request.descriptors.map(() => ({ code: "OK" })) };
}

function check({ domain, descriptors }: RateLimitRequest): void {
  if (domain === "") throw new RequestError("The domain must not be empty.");
  if (descriptors.length === 0) throw new RequestError("The list of descriptors must not be empty.");
  if (descriptors.length > MOST_DESCRIPTORS) {
    throw new RequestError(
      `A request may have ${MOST_DESCRIPTORS} descriptors; this one has ${descriptors.length}.`,
    );
  }
  for (const { entries } of descriptors) {
    if (entries.length > MOST_ENTRIES)
      throw new RequestError(`A descriptor may have ${MOST_ENTRIES} entries.`);
    for (const { key, value } of entries) {
      if (key.length + value.length > LONGEST_TEXT) {
        throw new RequestError(`An entry may have ${LONGEST_TEXT} characters.`);
      }
    }
  }
}
