/** One call of an adversary, at a time after the beginning. */
export interface Attempt {
  readonly at: number;
  readonly cost: number;
}

/** Traffic that finds where a limiter is soft. All times are relative to a boundary of the clock. */
export const ADVERSARIES: Readonly<Record<string, (limit: number, window: number) => Attempt[]>> = {
  "two bursts around a boundary": (limit, window) => [
    ...burst(window - 1, limit),
    ...burst(window, limit),
    ...burst(2 * window - 1, limit),
  ],

  "a burst near the end of a window, and again near the end of the next": (limit, window) => [
    ...burst(Math.floor(window * 0.9), limit),
    ...burst(Math.floor(window * 1.8), limit),
    ...burst(Math.floor(window * 1.899), limit),
  ],

  "idle, a burst at the window's end, then a drip": (limit, window) => [
    ...burst(3 * window - 1, limit),
    ...every(Math.ceil(window / 100), 3 * window, 5 * window),
  ],

  "a burst in a cell's last millisecond, then retries as it leaves": (limit, window) => [
    ...burst(Math.ceil(window / 7) * 7 - 1, limit),
    ...every(1, Math.ceil(window / 7) * 7 - 2 + window, Math.ceil(window / 7) * 7 + 10 + window).flatMap(
      ({ at }) => burst(at, limit),
    ),
  ],

  "a storm of retries": (_limit, window) => every(Math.ceil(window / 90), 0, 4 * window),

  "bursts with pauses": (limit, window) =>
    [0, 1, 2, 3, 4, 5].flatMap((n) => burst(Math.floor(n * window * 0.61), limit)),

  "weights of all sizes": (limit, window) =>
    every(Math.ceil(window / 40), 0, 5 * window).map(({ at }, n) => ({
      at: at + ((n * 7919) % Math.ceil(window / 50)),
      cost: 1 + ((n * 104_729) % limit),
    })),
};

function burst(at: number, calls: number): Attempt[] {
  return Array.from({ length: calls }, () => ({ at, cost: 1 }));
}

function every(gap: number, from: number, to: number): Attempt[] {
  const attempts = [];
  for (let at = from; at < to; at += gap) attempts.push({ at, cost: 1 });
  return attempts;
}

/** What was admitted in the window that ends at `time`. */
export function countIn(admitted: readonly Attempt[], window: number, time: number): number {
  let count = 0;
  for (const { at, cost } of admitted) {
    if (at <= time && time - at < window) count += cost;
  }
  return count;
}

/** The most that was admitted in any window: each such window can be slid until it ends with a request. */
export function mostInAnyWindow(admitted: readonly Attempt[], window: number): number {
  return Math.max(0, ...admitted.map(({ at }) => countIn(admitted, window, at)));
}
