// Many processes with leases on one store, in virtual time: never over, nearly all of the ideal, and fair.
import { describe, expect, it } from "vitest";
import {
  type Arrival,
  type Faults,
  idealOf,
  mostInAnyWindow,
  type Outcome,
  randomFrom,
  simulate,
  type World,
} from "../../test/tierSimulation.js";
import { TRAFFIC } from "../../test/tierTraffic.js";
import { fixedWindow, type Rule, slidingCells, slidingLog } from "../rule.js";

const SEEDS = 30;
const LIMIT = 2000;
const WINDOW = 2000;

/** Rules that promise never to be over, each by its name. */
const RULES: Readonly<Record<string, readonly Rule[]>> = {
  log: [slidingLog({ limit: LIMIT, window: WINDOW })],
  "strict cells": [slidingCells({ limit: LIMIT, window: WINDOW })],
  "two logs": [
    slidingLog({ limit: LIMIT, window: WINDOW }),
    slidingLog({ limit: LIMIT * 1.5, window: WINDOW * 2 }),
  ],
  "a log and cells": [
    slidingLog({ limit: LIMIT, window: WINDOW }),
    slidingCells({ limit: LIMIT * 2, window: WINDOW * 3, cells: 30 }),
  ],
};

type Kind = keyof typeof TRAFFIC;

/** A world that the seed determines: nodes, load, faults, rules and costs. */
function randomWorld(kind: Kind, seed: number): World {
  const random = randomFrom(seed * 7919 + kind.length);
  const of = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)];
  const nodes = of([1, 2, 5, 8, 32]);
  const load = of([0.9, 1.1, 1.5, 5]);
  const rules = of(Object.values(RULES));
  const windows = 3;
  const calls = TRAFFIC[kind]({ seed, nodes, limit: LIMIT, window: WINDOW, windows, load });
  const arrivals =
    random() < 0.3 ? calls.map((call) => ({ ...call, cost: 1 + Math.floor(3 * random()) })) : calls;
  const isFull = random() < 0.3;
  return { seed, rules, nodes, arrivals, isFull, ...randomFaults(random, nodes, windows * WINDOW) };
}

function randomFaults(random: () => number, nodes: number, duration: number): Faults {
  return {
    delayMs: random() < 0.5 ? [0.1, 1] : [0.1, 20],
    lost: random() < 0.5 ? 0 : 0.05 * random(),
    drift: 0.0009,
    deaths: Array.from({ length: Math.floor((random() * nodes) / 2) }, (_, node) => ({
      node,
      time: random() * duration,
    })),
  };
}

/** By how much the fullest window of any rule is over. */
function overBy(world: World, { admitted }: Outcome): number {
  return Math.max(...world.rules.map(({ window, limit }) => mostInAnyWindow(admitted, window) - limit));
}

describe("with leases no window is ever over its limit,", { timeout: 120_000 }, () => {
  for (const kind of Object.keys(TRAFFIC) as Kind[]) {
    it(`whatever is delayed, lost, drifting or dying: ${kind} traffic`, async () => {
      let spentHere = 0;
      for (let seed = 1; seed <= SEEDS; seed++) {
        const world = randomWorld(kind, seed);
        const outcome = await simulate(world);
        expect(overBy(world, outcome), `seed ${seed}`).toBeLessThanOrEqual(0);
        spentHere += outcome.spentHere;
      }
      expect(spentHere).toBeGreaterThan(5000);
    });
  }

  it("which the simulation would find: a window that is not stretched is", async () => {
    expect(await worstOf({ flaw: unstretched })).toBeGreaterThan(0);
    expect(await worstOf({})).toBeLessThanOrEqual(0);
  });

  it("as it would find clocks that drift more than is assumed", async () => {
    expect(await worstOf({ drift: 0.6 })).toBeGreaterThan(0);
  });

  it("nor over what fixed windows promise for windows of the clock", async () => {
    const rules = [fixedWindow({ limit: LIMIT, window: WINDOW })];
    for (let seed = 1; seed <= 5; seed++) {
      const { admitted } = await simulate({ ...adversary(seed), rules });
      const counts = new Map<number, number>();
      for (const { at, cost } of admitted) {
        // The simulation begins at a whole second, and this window is two.
        const window = Math.floor((1_700_000_000_000 + at) / WINDOW);
        counts.set(window, (counts.get(window) ?? 0) + cost);
      }
      expect(Math.max(...counts.values())).toBeLessThanOrEqual(LIMIT);
    }
  });

  async function worstOf(changes: Partial<World>): Promise<number> {
    let worst = -Infinity;
    for (let seed = 1; seed <= 6; seed++) {
      const world = { ...adversary(seed), ...changes };
      worst = Math.max(worst, overBy(world, await simulate(world)));
    }
    return worst;
  }
});

function adversary(seed: number): World {
  const options = { seed, nodes: 4, limit: LIMIT, window: WINDOW, windows: 4, load: 1 };
  return { seed, rules: RULES.log, nodes: 4, arrivals: TRAFFIC.adversarial(options), delayMs: [0.1, 0.3] };
}

function unstretched<T extends { readonly rule: { readonly window: number } }>(charge: T): T {
  return { ...charge, rule: { ...charge.rule, window: WINDOW } };
}

describe("on hot keys leases", { timeout: 120_000 }, () => {
  const limit = 30_000;
  const window = 10_000;
  const rules = [slidingLog({ limit, window })];
  const hot = (kind: Kind, nodes: number, load: number, seed: number): World => {
    const arrivals = TRAFFIC[kind]({ seed, nodes, limit, window, windows: 5.5, load });
    return { seed, rules, nodes, arrivals, delayMs: [0.2, 2], drift: 0.0005 };
  };

  it.each([
    ["steady", 1, 1.5],
    ["steady", 8, 1.5],
    ["skewed", 8, 1.2],
    ["steady", 32, 1.1],
    ["bursty", 8, 1.2],
  ] as const)(
    "admit 0.99 of what an exact log would: %s traffic, %i nodes, %d times the limit",
    async (kind, nodes, load) => {
      const world = hot(kind, nodes, load, 1);
      const { admitted, spentHere } = await simulate(world);
      expect(mostInAnyWindow(admitted, window)).toBeLessThanOrEqual(limit);
      expect(admitted.length / idealOf(world)).toBeGreaterThan(0.99);
      if (nodes < 32) expect(spentHere / admitted.length).toBeGreaterThan(0.5);
    },
  );

  it.each([
    [1.5, 20],
    [5, 50],
  ])("of a key that is always full ask once in many calls: %d times the limit", async (load, times) => {
    const full = { limit: 60_000, window: 30_000 };
    const arrivals = TRAFFIC.steady({ ...full, seed: 1, nodes: 8, windows: 1, load });
    const world = { seed: 1, rules: [slidingLog(full)], nodes: 8, arrivals, isFull: true };
    const { admitted, roundTrips } = await simulate(world);
    expect(mostInAnyWindow(admitted, full.window)).toBeLessThanOrEqual(full.limit);
    expect((admitted.length - full.limit) / idealOf(world)).toBeGreaterThan(0.99);
    expect(arrivals.length / roundTrips).toBeGreaterThan(times);
  });

  it("are shared fairly by nodes that ask for the same", async () => {
    const { admitted } = await simulate(hot("steady", 8, 2, 3));
    const counts = Array.from({ length: 8 }, (_, n) => admitted.filter(({ node }) => node === n).length);
    expect(Math.max(...counts) / Math.min(...counts)).toBeLessThan(1.1);
  });

  it("leave others what they do not spend", async () => {
    // One node takes leases and falls silent; from then on another asks for all that there is.
    const calls: Arrival[] = [];
    for (let time = 0; time < 400; time += 0.2) calls.push({ time, node: 0, key: "hot", cost: 1 });
    for (let time = 500; time < 5000; time += 0.1) calls.push({ time, node: 1, key: "hot", cost: 1 });
    const world = { seed: 1, rules, nodes: 2, arrivals: calls };
    const { admitted } = await simulate(world);
    expect(admitted.length / idealOf(world)).toBeGreaterThan(0.999);
  });

  it("are not taken for cold keys", async () => {
    const calls = Array.from({ length: 2000 }, (_, n) => ({
      time: n * 5,
      node: n % 4,
      key: "cold",
      cost: 1,
    }));
    const { spentHere, roundTrips } = await simulate({ seed: 1, rules, nodes: 4, arrivals: calls });
    expect({ spentHere, roundTrips }).toEqual({ spentHere: 0, roundTrips: calls.length });
  });
});
