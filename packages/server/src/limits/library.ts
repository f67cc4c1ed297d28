// Stands in for `resilient` and `tiered` of "sluice" until they are there.
import type { Store } from "sluice";

interface ResilientOptions {
  readonly onOutage: "open" | "closed" | "local";
  readonly deadlineMs?: number;
  readonly instances?: number;
  readonly local?: Store;
  readonly events?: {
    readonly onOutage?: (outage: { readonly error: Error }) => unknown;
    readonly onRecover?: (recovery: { readonly outageMs: number }) => unknown;
  };
}

export function resilient(store: Store, _options: ResilientOptions): Store {
  return store;
}

export function tiered(store: Store, _options: object): Store {
  return store;
}
