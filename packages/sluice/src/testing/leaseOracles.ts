/** What it means to hold something on a lease, said as plainly as in oracles.ts. */
import type { Held } from "../algorithms/algorithm.js";
import type { Count } from "../store.js";
import type { Oracle } from "./oracles.js";

interface Holder {
  readonly id: string;
  readonly at: number;
  readonly cost: number;
  endsAt: number;
}

function sumOf(holders: readonly Holder[]): number {
  return holders.reduce((sum, { cost }) => sum + cost, 0);
}

/** Who holds how many slots, and until when. */
export class SlotOracle implements Oracle {
  readonly #limit: number;
  readonly #lease: number;
  readonly #lookBackMs: number;
  #holders: Holder[] = [];

  constructor(limit: number, lease: number, lookBackMs: number) {
    this.#limit = limit;
    this.#lease = lease;
    this.#lookBackMs = lookBackMs;
  }

  get newest(): number {
    return Math.max(0, ...this.#holders.map(({ endsAt }) => endsAt - this.#lease));
  }

  fits(time: number, cost: number): boolean {
    return cost === 0 || sumOf(this.#live(time)) + cost <= this.#limit;
  }

  charge(now: number, at: number, cost: number, id = ""): void {
    if (cost > 0) this.#holders.push({ id, at, cost, endsAt: at + this.#lease });
    this.#holders = this.#holders.filter(({ endsAt }) => now - this.#lookBackMs < endsAt);
  }

  settle(_now: number, _at: number, _cost: number, _actual: number, id: string): void {
    this.#holders = this.#holders.filter((holder) => holder.id !== id);
  }

  renew(now: number, _at: number, id: string): boolean {
    const own = this.#live(now).find((holder) => holder.id === id);
    if (own !== undefined) own.endsAt = now + this.#lease;
    return own !== undefined;
  }

  remaining(time: number): number {
    return Math.max(0, this.#limit - sumOf(this.#live(time)));
  }

  isEmpty(time: number): boolean {
    return this.#live(time).length === 0;
  }

  held(time: number): Held {
    const begins = this.#live(time).map(({ endsAt }) => endsAt - this.#lease);
    if (begins.length === 0) return { count: 0, oldestAt: undefined, newestAt: undefined };
    return {
      count: sumOf(this.#live(time)),
      oldestAt: Math.min(...begins),
      newestAt: Math.max(...begins),
    };
  }

  count(): undefined {}

  forgetsBetween(from: number, to: number): boolean {
    return this.#holders.some(({ endsAt }) => from < endsAt && endsAt <= to);
  }

  #live(time: number): Holder[] {
    return this.#holders.filter(({ endsAt }) => time < endsAt);
  }
}

/** What a window counts for good, and who holds how much beside that, and until when. */
export class HoldOracle implements Oracle {
  readonly #counted: Oracle;
  readonly #window: number;
  readonly #lease: number;
  readonly #lookBackMs: number;
  #holders: Holder[] = [];

  constructor(counted: Oracle, window: number, lease: number, lookBackMs: number) {
    this.#counted = counted;
    this.#window = window;
    this.#lease = lease;
    this.#lookBackMs = lookBackMs;
  }

  get newest(): number {
    return this.#counted.newest;
  }

  fits(time: number, cost: number): boolean {
    return cost === 0 || this.#counted.fits(time, cost + sumOf(this.#live(time)));
  }

  charge(now: number, at: number, cost: number, id?: string): void {
    if (id === undefined) this.#counted.charge(now, at, cost);
    else if (cost > 0) this.#holders.push({ id, at, cost, endsAt: at + this.#lease });
    this.#holders = this.#holders.filter(({ endsAt }) => now - this.#lookBackMs < endsAt);
  }

  settle(now: number, at: number, _cost: number, actual: number, id: string): void {
    const isHeld = this.#live(now).some((holder) => holder.id === id);
    this.#holders = this.#holders.filter((holder) => holder.id !== id);
    if (isHeld) this.#counted.settle(Math.max(now, at), at, 0, actual, id);
    else this.#counted.settle(now, at, 0, actual, id);
  }

  renew(now: number, at: number, id: string): boolean {
    if (now >= at + this.#window) return true;
    const own = this.#live(now).find((holder) => holder.id === id);
    if (own !== undefined) own.endsAt = Math.min(now + this.#lease, at + this.#window);
    return own !== undefined;
  }

  remaining(time: number): number {
    return Math.max(0, this.#counted.remaining(time) - sumOf(this.#live(time)));
  }

  isEmpty(time: number): boolean {
    return this.#counted.isEmpty(time) && this.#live(time).length === 0;
  }

  held(time: number): Held {
    const { count, oldestAt, newestAt } = this.#counted.held(time);
    const times = [oldestAt, newestAt, ...this.#live(time).map(({ at }) => at)].filter(
      (at) => at !== undefined,
    );
    if (times.length === 0) return { count, oldestAt, newestAt };
    return {
      count: count + sumOf(this.#live(time)),
      oldestAt: Math.min(...times),
      newestAt: Math.max(...times),
    };
  }

  count(now: number, from: number, to: number): Count | undefined {
    const counted = this.#counted.count(now, from, to);
    if (counted === undefined) return undefined;
    const since = this.#counted.count(now, 0, now)?.from ?? 0;
    const [first, last] = [Math.max(counted.from, since), Math.min(counted.to, now)];
    const inPeriod = this.#live(now).filter(({ at }) => first <= at && at <= last);
    return { ...counted, count: counted.count + sumOf(inPeriod) };
  }

  forgetsBetween(from: number, to: number): boolean {
    const isGone = ({ endsAt }: Holder) => from < endsAt && endsAt <= to;
    return this.#counted.forgetsBetween(from, to) || this.#holders.some(isGone);
  }

  #live(time: number): Holder[] {
    return this.#holders.filter(({ endsAt }) => time < endsAt);
  }
}
