import type { RuleDecision } from "../src/decision.js";
import type { Rule } from "../src/rule.js";
import type { Charge, Store, StoredRule } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { tieredOn } from "../src/stores/tiered.js";
import { Events } from "./events.js";

/** One call of one process, in true milliseconds after the beginning. */
export interface Arrival {
  readonly time: number;
  readonly node: number;
  readonly key: string;
  readonly cost: number;
}

export interface Faults {
  /** One way, in milliseconds: at least, and at most. */
  readonly delayMs?: readonly [number, number];
  /** How many requests are lost, and how many replies, as parts of all. */
  readonly lost?: number;
  /** By how much a node's clock may run fast or slow, as a part of its rate. */
  readonly drift?: number;
  /** Nodes that stop at a time, with whatever they hold. */
  readonly deaths?: readonly { readonly node: number; readonly time: number }[];
}

export interface World extends Faults {
  readonly seed: number;
  readonly rules: readonly Rule[];
  readonly nodes: number;
  readonly arrivals: readonly Arrival[];
  /** Whether the first rule's limit was taken evenly in the window before: then a little is free again all the time. */
  readonly isFull?: boolean;
  /** What the remote does instead of what it is told: for flaws that the simulation must find. */
  readonly flaw?: (charge: Charge) => Charge;
}

export interface Admission {
  /** When it was let through, by the store's clock, which here is the true one. */
  readonly at: number;
  /** None (-1) took what was taken before the beginning. */
  readonly node: number;
  readonly key: string;
  readonly cost: number;
}

export interface Outcome {
  readonly admitted: readonly Admission[];
  readonly roundTrips: number;
  readonly failed: number;
  /** How many were admitted without asking. */
  readonly spentHere: number;
}

const START = 1_700_000_000_000;
/** After this long without a reply a client gives up. */
const GIVE_UP_MS = 250;

/** Runs processes with a tiered store each, on one remote store, in virtual time. The same seed, the same run. */
export async function simulate(world: World): Promise<Outcome> {
  return new Simulation(world).run();
}

class Simulation {
  readonly #world: World;
  readonly #random: () => number;
  readonly #events = new Events();
  readonly #remote: Store;
  readonly #rules: readonly StoredRule[];
  readonly #admitted: Admission[] = [];
  #now = 0;
  #roundTrips = 0;
  #failed = 0;
  #spentHere = 0;
  /** When the question was sent whose reply is being delivered. */
  #deliveredFrom = 0;
  #hasDelivered = false;

  constructor(world: World) {
    this.#world = world;
    this.#random = randomFrom(world.seed);
    this.#remote = memoryStore({ clock: () => START + Math.floor(this.#now) });
    this.#rules = world.rules.map((rule) => ({ ...rule, path: `simulated/${rule.name}` }));
  }

  async run(): Promise<Outcome> {
    const { nodes, arrivals, deaths = [] } = this.#world;
    const setTime = (time: number) => {
      this.#now = time;
    };
    if (this.#world.isFull) this.#admitted.push(...fill(this.#world, this.#remote, this.#rules, setTime));
    const stores = Array.from({ length: nodes }, (_, node) => this.#node(node));
    const diesAt = stores.map((_, node) => deaths.find((death) => death.node === node)?.time ?? Infinity);
    for (const arrival of arrivals) {
      if (arrival.time < diesAt[arrival.node]) {
        this.#events.add(arrival.time, () => this.#arrive(stores[arrival.node], arrival));
      }
    }
    for (let event = this.#events.next(); event !== undefined; event = this.#events.next()) {
      this.#now = event.time;
      this.#hasDelivered = false;
      event.run();
      // Only replies have work waiting behind promises.
      if (this.#hasDelivered) await new Promise(setImmediate);
    }
    return {
      admitted: this.#admitted,
      roundTrips: this.#roundTrips,
      failed: this.#failed,
      spentHere: this.#spentHere,
    };
  }

  #arrive(store: Store, { node, key, cost }: Arrival): void {
    const calledAt = this.#now;
    const charges = this.#rules.map((rule) => ({ rule, key, cost, partition: key }));
    const admit = (decisions: readonly RuleDecision[], at: number) => {
      if (decisions.every(({ allowed }) => allowed)) this.#admitted.push({ at, node, key, cost });
    };
    const answer = store.decide(charges, true);
    if (!(answer instanceof Promise)) {
      const before = this.#admitted.length;
      admit(answer, Math.floor(this.#now));
      this.#spentHere += this.#admitted.length - before;
      return;
    }
    answer.then(
      (decisions) => {
        // Asked for in the question: admitted when the remote decided. Joined later: when the reply came.
        const isAskedFor = calledAt <= this.#deliveredFrom;
        admit(decisions, isAskedFor ? decisions[0].at - START : Math.floor(this.#now));
      },
      () => this.#failed++,
    );
  }

  #node(node: number): Store {
    const { drift = 0, deaths = [] } = this.#world;
    const rate = 1 + drift * (2 * this.#random() - 1);
    const offset = 1e6 * this.#random();
    const diesAt = deaths.find((death) => death.node === node)?.time ?? Infinity;
    const timing = {
      now: () => offset + this.#now * rate,
      later: (ms: number, call: () => void) => {
        const time = this.#now + ms / rate;
        if (time < diesAt) {
          this.#events.add(time, () => {
            this.#hasDelivered = true;
            call();
          });
        }
        return { ref() {}, unref() {} };
      },
      random: this.#random,
    };
    return tieredOn(timing, this.#network(diesAt), { leases: true });
  }

  /** The remote as a node sees it: behind delays, and with requests and replies lost. */
  #network(diesAt: number): Store {
    const call = <T>(operation: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const sentAt = this.#now;
        this.#roundTrips++;
        const deliver = (time: number, run: () => void) => {
          if (time >= diesAt) return;
          this.#events.add(time, () => {
            this.#deliveredFrom = sentAt;
            this.#hasDelivered = true;
            run();
          });
        };
        const giveUp = () => deliver(sentAt + GIVE_UP_MS, () => reject(new Error("no reply")));
        if (this.#isLost()) return giveUp();
        this.#events.add(sentAt + this.#delay(), () => {
          const value = operation();
          if (this.#isLost()) giveUp();
          else deliver(this.#now + this.#delay(), () => resolve(value));
        });
      });
    const remote = this.#remote;
    const { flaw = (charge) => charge } = this.#world;
    const unused = () => {
      throw new Error("not simulated");
    };
    return {
      sync: false,
      decide: (charges, commit) =>
        call(() => remote.decide(charges.map(flaw), commit) as readonly RuleDecision[]),
      settle: (settlements) =>
        call(
          () =>
            remote.settle(
              settlements.map((settlement) => ({ ...settlement, ...flaw(settlement) })),
            ) as boolean,
        ),
      status: unused,
      count: unused,
      reset: unused,
      close: () => {},
    };
  }

  #isLost(): boolean {
    return this.#random() < (this.#world.lost ?? 0);
  }

  #delay(): number {
    const [least, most] = this.#world.delayMs ?? [0.2, 1];
    return least + (most - least) * this.#random() ** 3;
  }
}

/** How many an exact log would have admitted of the same calls, had it heard of each at once. */
export function idealOf(world: World): number {
  const { rules, arrivals } = world;
  let now = 0;
  const store = memoryStore({ clock: () => START + Math.floor(now) });
  const stored = rules.map((rule) => ({ ...rule, path: `ideal/${rule.name}` }));
  let admitted = 0;
  const setTime = (time: number) => {
    now = time;
  };
  if (world.isFull) fill(world, store, stored, setTime);
  for (const { time, key, cost } of arrivals) {
    now = time;
    const charges = stored.map((rule) => ({ rule, key, cost, partition: key }));
    const decisions = store.decide(charges, true) as readonly RuleDecision[];
    if (decisions.every(({ allowed }) => allowed)) admitted += cost;
  }
  return admitted;
}

/** Takes the limit evenly in the window before the beginning. */
function fill(
  { rules: [{ limit, window }], arrivals: [{ key }] }: World,
  store: Store,
  rules: readonly StoredRule[],
  setTime: (time: number) => void,
): Admission[] {
  const charges = rules.map((rule) => ({ rule, key, cost: 1, partition: key }));
  return Array.from({ length: limit }, (_, n) => {
    const at = Math.floor(((n - limit) * window) / limit);
    setTime(at);
    void store.decide(charges, true);
    return { at, node: -1, key, cost: 1 };
  });
}

/** The most that was admitted in any window of any key: each can be slid until it ends with an admission. */
export function mostInAnyWindow(admitted: readonly Admission[], window: number): number {
  let most = 0;
  for (const key of new Set(admitted.map((admission) => admission.key))) {
    const own = admitted.filter((admission) => admission.key === key).sort((a, b) => a.at - b.at);
    let first = 0;
    let sum = 0;
    for (const { at, cost } of own) {
      sum += cost;
      while (at - own[first].at >= window) sum -= own[first++].cost;
      most = Math.max(most, sum);
    }
  }
  return most;
}

/** A generator of numbers from 0 to 1 that a seed determines (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
