import type { Store } from "../store.js";

/** The store as if it were far away: it answers by promises, and never at once. */
export function remotely(store: Store): Store {
  return {
    sync: false,
    decide: async (charges, commit) => store.decide(charges, commit),
    settle: async (settlements) => store.settle(settlements),
    status: async (charges) => store.status(charges),
    count: async (charges, from, to) => store.count(charges, from, to),
    reset: async (charges) => store.reset(charges),
    close: async () => store.close(),
  };
}
