import { expect } from "vitest";

/** What clients were told, by the server's stamps: in milliseconds since the epoch. */
export interface Told {
  readonly admitted: readonly number[];
  readonly denied: readonly number[];
}

/** Fails where some window of the merged stamps holds more than the limit. */
export function expectNeverOver(admitted: readonly number[], limit: number, window: number): void {
  const times = [...admitted].sort((a, b) => a - b);
  const over = times.findIndex((at, n) => n >= limit && at - times[n - limit] < window);
  const worst = over === -1 ? undefined : times.slice(over - limit, over + 1);
  expect(worst, `more than ${limit} within ${window} ms`).toBeUndefined();
}

/** Fails where a call was denied though the window that ended with it had room. */
export function expectNeverUnder({ admitted, denied }: Told, limit: number, window: number): void {
  const times = [...admitted].sort((a, b) => a - b);
  let [first, next] = [0, 0];
  for (const at of [...new Set(denied)].sort((a, b) => a - b)) {
    while (next < times.length && times[next] <= at) next++;
    while (first < next && times[first] <= at - window) first++;
    expect(next - first, `denied at ${at} with room`).toBeGreaterThanOrEqual(limit);
  }
}
