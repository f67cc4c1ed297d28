import type { Decision } from "../decision.js";
import type { Key } from "../key.js";
import { createLimiter, type Limiter } from "../limiter.js";
import type { RuleInput } from "../rule.js";
import type { MaybePromise, Store } from "../store.js";

/** Time that a test sets. */
export interface VirtualClock {
  now: number;
}

/** A store of its own for one test, on time of its own. */
export interface World {
  readonly clock: VirtualClock;
  readonly store: Store;
  /** A limiter on the store; those of one name share their counts. */
  limiter(rules: RuleInput | readonly RuleInput[], name?: string): Limiter;
}

/** The beginning of most tests: a whole second, a whole tenth of a minute, and no whole minute. */
export const START = 1_700_000_000_000;

/** How a test comes by its store. */
export interface WorldOptions {
  /** A fresh, empty store whose only clock is this one. */
  createStore(context: { readonly clock: () => number }): MaybePromise<Store>;
  /** Called after each test instead of `store.close()`, where more is to be cleaned up. */
  discard?(store: Store): MaybePromise<void>;
  /** Changes each rule before it is used, to try a store's other ways of keeping the same counts. */
  adapt?(rule: RuleInput): RuleInput;
}

/** Runs the body in a world of its own, and discards it whatever happens. */
export async function inWorld(options: WorldOptions, body: (world: World) => Promise<void>): Promise<void> {
  const clock: VirtualClock = { now: START };
  const store = await options.createStore({ clock: () => clock.now });
  const { adapt = (rule) => rule } = options;
  let limiters = 0;
  try {
    await body({
      clock,
      store,
      limiter(rules, name) {
        limiters++;
        const adapted = (Array.isArray(rules) ? rules : [rules]).map(adapt);
        return createLimiter({ name: name ?? `limiter ${limiters}`, store, rules: adapted });
      },
    });
  } finally {
    await (options.discard ? options.discard(store) : store.close());
  }
}

/** `tryAcquire`, without waiting for a promise where the store answers at once. */
export function ask(world: World, limiter: Limiter, key: Key, cost?: number): MaybePromise<Decision> {
  return world.store.sync ? limiter.tryAcquireSync(key, cost) : limiter.tryAcquire(key, cost);
}

/** Takes one by one until denied; tells how many were admitted. */
export async function fill(limiter: Limiter, key: Key): Promise<number> {
  let admitted = 0;
  while ((await limiter.tryAcquire(key)).allowed) admitted++;
  return admitted;
}
