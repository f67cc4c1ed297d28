import { createLimiter, type Limiter } from "../src/limiter.js";
import type { RuleInput } from "../src/rule.js";
import type { Store } from "../src/store.js";
import { memoryStore } from "../src/stores/memory.js";
import { type TieredOptions, tieredOn } from "../src/stores/tiered.js";
import { remotely } from "../src/testing/remotely.js";
import { START } from "../src/testing/world.js";

/** Processes with a tier each on one remote store, on time that a test sets; it counts what the remote is asked. */
export function stage(options: TieredOptions = {}, wrap = (store: Store) => store) {
  const clock = { now: START };
  const memory = memoryStore({ clock: () => clock.now });
  const asked: number[] = [];
  const gate = { open: Promise.resolve() };
  const counted: Store = {
    ...remotely(memory),
    async decide(charges, commit) {
      asked.push(charges[0].cost);
      const decisions = await memory.decide(charges, commit);
      await gate.open;
      return decisions;
    },
  };
  const timers: { at: number; call: () => void }[] = [];
  const timing = {
    now: () => clock.now,
    later: (ms: number, call: () => void) => {
      timers.push({ at: clock.now + ms, call });
      return { ref() {}, unref() {} };
    },
    random: () => 0.5,
  };
  const process = (rules: RuleInput | RuleInput[], name = "test") =>
    createLimiter({ name, rules, store: tieredOn(timing, wrap(counted), options) });
  /** Time passes, and what was due is done. */
  async function pass(ms: number): Promise<void> {
    clock.now += ms;
    for (const timer of timers.splice(0)) timer.at <= clock.now ? timer.call() : timers.push(timer);
    await new Promise(setImmediate);
  }
  return { clock, asked, memory, gate, process, pass, counted };
}

/** One by one. */
export const take = async (limiter: Limiter, key: string, times: number) => {
  const decisions = [];
  for (let n = 0; n < times; n++) decisions.push(await limiter.tryAcquire(key));
  return decisions;
};
