// The same as the simulation, for real: processes on one Redis, their admissions merged and every window counted.
import { describe, expect, it } from "vitest";
import { runProcesses } from "../../test/tierProcesses.mjs";
import { useRedis } from "../../test/useRedis.js";

const shared = useRedis();

describe("8 processes with leases on one Redis", { timeout: 120_000 }, () => {
  it("admit no more than the limit in any window, nearly all of it, and ask rarely", async () => {
    const [limit, window, durationMs] = [20_000, 4000, 9000];
    const options = {
      limit,
      window,
      durationMs,
      load: 1.5,
      processes: 8,
      redis: { port: shared.server.port },
    };
    const outcome = await runProcesses({ ...options, leases: true });
    expect(outcome.failed).toBe(0);
    expect(outcome.calls).toBeGreaterThan(0.9 * 7500 * 9);
    expect(outcome.most).toBeLessThanOrEqual(limit);
    // On a machine of its own it is 0.99; where 8 processes wait for two busy cores, leases expire unspent.
    expect(outcome.admitted / outcome.ideal).toBeGreaterThan(0.9);
    expect(outcome.calls / outcome.roundTrips).toBeGreaterThan(3);
  });
});
