import { afterEach, beforeEach, expect, vi } from "vitest";

/** Makes the tests of a file run on virtual time, and sees to it that none leaves a timer behind after `close`. */
export function onVirtualTime(close: () => unknown = () => {}): void {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_700_000_000_000 });
  });
  afterEach(async () => {
    await close();
    expect(vi.getTimerCount(), "timers left behind").toBe(0);
    vi.useRealTimers();
  });
}
