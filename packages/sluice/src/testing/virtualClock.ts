/** Time that a test sets. */
export interface VirtualClock {
  now: number;
}
