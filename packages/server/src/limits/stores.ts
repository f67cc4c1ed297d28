import { memoryStore, type Store } from "sluice";
import type { Outage, Settings, Tiers } from "../config/configuration.js";

/** The one place where counts are kept, seen through the outage policies and tiers that limiters ask for. */
export interface Stores {
  readonly kind: "memory" | "redis";
  under(outage: Outage, tiers?: Tiers): Store;
  /** Resolves when the store answers, rejects with the reason when it does not. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export function openMemory({ memory }: Settings): Stores {
  const store = memoryStore(memory?.maxKeys === undefined ? {} : { maxKeys: memory.maxKeys });
  return {
    kind: "memory",
    under: () => store,
    ping: async () => {},
    close: async () => store.close(),
  };
}
