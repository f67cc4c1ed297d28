import { inWorld, type World, type WorldOptions } from "./world.js";

/** What the runner gives: vitest's, jest's or node:test's own. */
export interface Runner {
  readonly describe: (name: string, body: () => void) => unknown;
  readonly it: (name: string, body: () => Promise<void>, timeoutMs?: number) => unknown;
}

/** How the laws are written: each test in a world of its own. */
export interface Suite {
  describe(name: string, body: () => void): void;
  test(name: string, body: (world: World) => Promise<void>): void;
}

/** Remote stores take their time; virtual time does not. */
export const TIMEOUT_MS = 600_000;

export function suiteOf({ describe, it }: Runner, worlds: WorldOptions): Suite {
  return {
    describe: (name, body) => void describe(name, body),
    test: (name, body) => void it(name, () => inWorld(worlds, body), TIMEOUT_MS),
  };
}
