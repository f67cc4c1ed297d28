// The messages of Envoy's protocol as the server handles them, whether they came by gRPC or as JSON.
import type { Unit } from "../config/envoySchema.js";

export interface Entry {
  readonly key: string;
  readonly value: string;
}

export interface RequestedLimit {
  readonly requestsPerUnit: number;
  /** The protocol's name, such as "MINUTE". */
  readonly unit: string;
}

export interface RequestedDescriptor {
  readonly entries: readonly Entry[];
  /** A limit of the request's own, in place of the configured one. */
  readonly limit?: RequestedLimit | null | undefined;
  /** In place of the request's; 0 only looks. */
  readonly hitsAddend?: { readonly value: number } | null | undefined;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RequestedDescriptor[];
  /** 0 stands for 1. */
  readonly hitsAddend: number;
}

export type Code = "OK" | "OVER_LIMIT";

export interface CurrentLimit {
  readonly name?: string;
  readonly requestsPerUnit: number;
  readonly unit: Uppercase<Unit>;
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit?: CurrentLimit;
  readonly limitRemaining?: number;
  readonly durationUntilReset?: { readonly seconds: number; readonly nanos: number };
}

export interface RateLimitResponse {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd?: readonly { readonly key: string; readonly value: string }[];
}

/** A request that breaks the protocol: it is answered with an error, not with a decision. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** The gRPC status that says it best; an invalid argument unless told. */
  readonly code: number | undefined;

  constructor(message: string, code?: number) {
    super(message);
    this.code = code;
  }
}
