// A composed store is a store: the conformance suite over the decorators, and over one around the other.
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { RuleDecision } from "../decision.js";
import type { Charge, Store } from "../store.js";
import { conformance } from "../testing/index.js";
import { remotely } from "../testing/remotely.js";
import { memoryStore } from "./memory.js";
import { resilient } from "./resilient.js";
import { tiered } from "./tiered.js";

const closed = (store: Store) => resilient(store, { onOutage: "closed" });

const COMPOSED: Readonly<Record<string, (clock: () => number) => Store>> = {
  "resilient, around a remote store,": (clock) => closed(remotely(memoryStore({ clock }))),
  "resilient, around a local store,": (clock) => closed(memoryStore({ clock })),
  "tiered, around a remote store,": (clock) => {
    const memory = memoryStore({ clock });
    return checked(memory, tiered(remotely(memory), { clock: forward(clock) }));
  },
  "resilient around tiered around resilient": (clock) => {
    const memory = memoryStore({ clock });
    return checked(memory, closed(tiered(closed(remotely(memory)), { clock: forward(clock) })));
  },
};

for (const [name, create] of Object.entries(COMPOSED)) {
  conformance({ name, describe, it, createStore: ({ clock }) => create(clock), decisions: 600 });
}

/** A process's own clock, which goes on by what the store's does and does not step back with it. */
function forward(clock: () => number): () => number {
  let last = clock();
  let now = 0;
  return () => {
    now += Math.max(0, clock() - last);
    last = clock();
    return now;
  };
}

/**
 * The store, each of its refusals compared with what the truth would have answered: never of what fits,
 * and never longer than is true. They may be shorter, where the store's clock stepped back or others were
 * admitted since, and tell what remained when they were heard; so the truth is passed on, for the suite to judge.
 */
function checked(truth: Store, store: Store): Store {
  const methods: Omit<Store, "decide" | "sync"> = {
    settle: (settlements) => store.settle(settlements),
    status: (charges) => store.status(charges),
    count: (charges, from, to) => store.count(charges, from, to),
    reset: (charges) => store.reset(charges),
    close: () => store.close(),
  };
  return {
    ...methods,
    sync: store.sync,
    async decide(charges, commit) {
      const told = await store.decide(charges, commit);
      if (told.every(({ allowed }) => allowed)) return told;
      const actual = (await truth.decide(charges, false)) as readonly RuleDecision[];
      compare(told, actual, charges);
      return actual;
    },
  };
}

function compare(told: readonly RuleDecision[], actual: readonly RuleDecision[], charges: readonly Charge[]) {
  const longest = (decisions: readonly RuleDecision[]) =>
    Math.max(...decisions.map(({ retryAfterMs }) => retryAfterMs));
  assert.ok(longest(actual) > 0, `refused what fits: ${JSON.stringify(charges)}`);
  assert.ok(longest(told) <= longest(actual));
  told.forEach((decision, d) => {
    assert.ok(decision.resetAfterMs <= actual[d].resetAfterMs);
    assert.equal(decision.rule, actual[d].rule);
  });
}
