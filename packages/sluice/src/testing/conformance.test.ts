import { describe, expect, it } from "vitest";
import type { Charge, Store } from "../store.js";
import { memoryStore } from "../stores/memory.js";
import { conformance } from "./index.js";
import { remotely } from "./remotely.js";

conformance({
  name: "a store that answers by promises",
  describe,
  it,
  createStore: (context) => remotely(memoryStore(context)),
  decisions: 20_000,
});

type Flaw = (sound: Store, clock: () => number) => Partial<Store>;

/** Stores with one flaw each, and a law that must find it. */
const FLAWS: Readonly<Record<string, readonly [Flaw, RegExp]>> = {
  "charges what it denies": [
    (sound) => ({
      decide(charges, commit) {
        const decisions = sound.decide(charges, commit) as ReturnType<typeof decisionsOf>;
        const isDenied = decisions.some(({ allowed }) => !allowed);
        if (isDenied && commit) sound.settle(charges.map(late(decisions)));
        return decisions;
      },
    }),
    /law 2/,
  ],
  "charges a peek": [(sound) => ({ decide: (charges) => sound.decide(charges, true) }), /law 2/],
  "decides rule by rule": [
    (sound) => ({
      decide: (charges, commit) => charges.flatMap((charge) => decisionsOf(sound, [charge], commit)),
    }),
    /law 3/,
  ],
  "checks first and counts later": [
    (sound) => ({
      sync: false,
      async decide(charges, commit) {
        const decisions = decisionsOf(sound, charges, false);
        await Promise.resolve();
        const isAllowed = decisions.every(({ allowed }) => allowed);
        if (isAllowed && commit) sound.settle(charges.map(late(decisions)));
        return decisions;
      },
    }),
    /law 8/,
  ],
  "tells to retry a millisecond early": [
    (sound) => ({
      decide: (charges, commit) =>
        decisionsOf(sound, charges, commit).map((decision) => ({
          ...decision,
          retryAfterMs: Math.max(0, decision.retryAfterMs - 1),
        })),
    }),
    /law 4/,
  ],
  "tells to retry a millisecond late": [
    (sound) => ({
      decide: (charges, commit) =>
        decisionsOf(sound, charges, commit).map((decision) => ({
          ...decision,
          retryAfterMs: decision.allowed ? 0 : decision.retryAfterMs + 1,
        })),
    }),
    /law 4/,
  ],
  "takes different keys for one": [
    (sound) => ({ decide: (charges, commit) => sound.decide(charges.map(lowerCased), commit) }),
    /never share a count/,
  ],
  "forgets when the clock steps back": [
    (sound, clock) => {
      let latest = 0;
      return {
        decide(charges, commit) {
          if (clock() < latest) sound.reset(charges);
          latest = clock();
          return sound.decide(charges, commit);
        },
      };
    },
    /law 7/,
  ],
  "settles nothing": [() => ({ settle: () => true }), /settled at its own time/],
  "settles at the time of settling": [
    (sound, clock) => ({
      settle: (settlements) =>
        sound.settle(settlements.map((settlement) => ({ ...settlement, at: clock() }))),
    }),
    /random traces/,
  ],
  "frees whichever slot": [
    (sound) => ({
      settle: (settlements) => sound.settle(settlements.map(({ id: _, ...rest }) => rest)),
    }),
    /whose holder/,
  ],
  "ends a lease late": [
    (sound) => {
      const longer = ({ rule, ...rest }: Charge) => ({ ...rest, rule: { ...rule, window: rule.window + 1 } });
      return {
        decide: (charges, commit) =>
          sound.decide(
            charges.map((charge) => (charge.rule.algorithm === "concurrent" ? longer(charge) : charge)),
            commit,
          ),
      };
    },
    /crashed/,
  ],
  "resets nothing": [() => ({ reset: () => {} }), /random traces/],
  "miscounts a period by one": [
    (sound) => ({
      count: (charges, from, to) => sound.count(charges, from, Math.max(from, to - 1)),
    }),
    /random traces/,
  ],
};

/** Charges once more, without asking. */
function late(decisions: ReturnType<typeof decisionsOf>) {
  return (charge: Charge, c: number) => ({ ...charge, cost: 0, actual: charge.cost, at: decisions[c].at });
}

function decisionsOf(store: Store, charges: readonly Charge[], commit: boolean) {
  return store.decide(charges, commit) as Exclude<ReturnType<Store["decide"]>, Promise<unknown>>;
}

function lowerCased(charge: Charge): Charge {
  return { ...charge, key: charge.key.toLowerCase() };
}

/** Runs the suite without a runner, and tells the full names of the tests that failed. */
async function failuresOf(createStore: (clock: () => number) => Store): Promise<string[]> {
  const path: string[] = [];
  const tests: { name: string; body: () => Promise<void> }[] = [];
  conformance({
    name: "a flawed store",
    describe(name, body) {
      path.push(name);
      body();
      path.pop();
    },
    it: (name, body) => tests.push({ name: [...path, name].join(" > "), body }),
    createStore: ({ clock }) => createStore(clock),
    decisions: 2000,
    seed: 1,
  });
  const failures: string[] = [];
  for (const { name, body } of tests) {
    await body().catch(() => failures.push(name));
  }
  return failures;
}

describe("the conformance suite", () => {
  it("finds nothing wrong with a sound store", async () => {
    expect(await failuresOf((clock) => memoryStore({ clock }))).toEqual([]);
  });

  it.each(Object.entries(FLAWS))("finds a store that %s", async (_, [flaw, law]) => {
    const failures = await failuresOf((clock) => {
      const sound = memoryStore({ clock });
      const methods = {
        sync: true,
        decide: sound.decide.bind(sound),
        settle: sound.settle.bind(sound),
        status: sound.status.bind(sound),
        count: sound.count.bind(sound),
        reset: sound.reset.bind(sound),
        close: sound.close.bind(sound),
      };
      return { ...methods, ...flaw(sound, clock) };
    });
    expect(failures).toContainEqual(expect.stringMatching(law));
  });
});
