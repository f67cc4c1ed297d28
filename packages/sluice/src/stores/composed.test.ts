// A composed store is a store: the conformance suite over the decorators, and over one around the other.
import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { RuleDecision } from "../decision.js";
import { slidingLog } from "../rule.js";
import type { Charge, Store } from "../store.js";
import { conformance } from "../testing/index.js";
import { remotely } from "../testing/remotely.js";
import { memoryStore } from "./memory.js";
import { resilient } from "./resilient.js";
import { tiered } from "./tiered.js";
import { enforced } from "./tiers/leasing.js";

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

/** What leases do not keep to the letter, and why not. */
const NOT_WITH_LEASES: Readonly<Record<string, string>> = {
  "every decision of random traces is the naive model's":
    "what is leased counts as taken in status and count; refusals tell what was so when they were heard",
  "what a fast clock admitted counts on when the clock is set right":
    "it does; but a refusal that was heard before tells the time that was true then",
  "strict slidingCells refuse only what a window and one cell would not hold":
    "a full key is refused until it is asked for again",
  "the bounds of the approximate are no larger than they need to be":
    "for the same reason less than the worst is admitted",
};

const unless =
  <T extends unknown[]>(run: (name: string, ...rest: T) => unknown) =>
  (name: string, ...rest: T) =>
    name in NOT_WITH_LEASES ? undefined : run(name, ...rest);

conformance({
  name: "tiered with leases, around a remote store,",
  describe: unless((name: string, body: () => void) => describe(name, body)),
  it: unless((name: string, body: () => Promise<void>, timeoutMs?: number) => it(name, body, timeoutMs)),
  createStore: ({ clock }) =>
    tiered(remotely(memoryStore({ clock })), { leases: true, clock: forward(clock) }),
  // An exact log is enforced for longer than its window: here for as long as the laws say.
  adapt(rule) {
    const { window, lease } = rule;
    if (rule.algorithm !== "slidingLog" || typeof window !== "number" || lease !== undefined) return rule;
    let [shorter, longer] = [1, window];
    while (shorter < longer) {
      const middle = Math.ceil((shorter + longer) / 2);
      if (enforcedFor(middle) > window) longer = middle - 1;
      else shorter = middle;
    }
    return { ...rule, window: shorter };
  },
});

function enforcedFor(window: number): number {
  return enforced({ ...slidingLog({ limit: 1, window }), path: "" }).window;
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
