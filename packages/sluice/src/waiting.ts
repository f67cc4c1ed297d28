import { combine, type RuleDecision } from "./decision.js";
import { SluiceError, show, wholeNumber } from "./errors.js";
import { type Charge, type Store, settlementsOf } from "./store.js";

/** When a waiting call gives up. */
export interface WaitOptions {
  /** Gives up when aborted, rejecting with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Gives up after this long, rejecting with `TIMEOUT`. */
  readonly timeoutMs?: number;
}

/** How `acquire` waits: for which cost, and when it gives up. */
export interface AcquireOptions extends WaitOptions {
  readonly cost?: number;
}

interface LineOptions extends WaitOptions {
  /** Each step counts as having come ten seconds earlier. */
  readonly priority?: number;
  /** Why to wait no longer for what was denied like this; undefined to wait on. */
  readonly hopeless?: (rules: readonly RuleDecision[]) => unknown;
}

/** Timers cannot be set further ahead; a longer wait asks again in between. */
const LONGEST_TIMER = 2 ** 31 - 1;
/** How much earlier a call counts as having come for each step of priority. */
const MS_PER_PRIORITY = 10_000;
/** How often to ask again for what is given back elsewhere without a word. */
export const RECHECK_MS = 200;
const DEGRADED_NAP_MS = 1000;
const NOWHERE: ReadonlySet<string> = new Set();

/** One who waits, in the line of each place it wants something of. */
class Waiter {
  readonly charges: readonly Charge[];
  /** For each charge, the place it is counted at. */
  readonly places: readonly string[];
  readonly rank: number;
  /** Where nobody behind it may ask: everywhere while it asks itself, then where it was denied. */
  stands = NOWHERE;
  /** Whether it has to wait until others have asked. */
  barred = false;
  readonly hopeless: NonNullable<LineOptions["hopeless"]>;
  /** What the store answered last, when that was no. */
  denial: readonly RuleDecision[] | undefined;
  /** Whether it takes one of the places that `maxWaiting` allows. */
  seated = false;
  present = true;
  admit: (rules: readonly RuleDecision[]) => void = () => {};
  refuse: (reason: unknown) => void = () => {};
  #woken = false;
  #endSleep: () => void = () => {};

  constructor(charges: readonly Charge[], priority: number, hopeless: LineOptions["hopeless"]) {
    this.charges = charges;
    this.hopeless = hopeless ?? (() => undefined);
    this.places = charges.map(placeOf);
    this.rank = performance.now() - priority * MS_PER_PRIORITY;
  }

  /** Sleeps, unless something called `wake` since the last sleep began; with no time, until it is woken. */
  async sleep(ms?: number): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        const timer = ms === undefined ? undefined : setTimeout(resolve, Math.min(ms, LONGEST_TIMER));
        this.#endSleep = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#woken = false;
  }

  wake(): void {
    this.#woken = true;
    this.#endSleep();
  }
}

/**
 * The waiting of `acquire`: a line for each place where something is counted, first come first served,
 * so that a heavy cost at the head is not overtaken by light ones. One who is denied bars those behind
 * it only where it was denied: who shares but another limit with it may pass. Denied, it sleeps until
 * the time its denial named, and is woken early when something is given back. A step of priority
 * counts as having come ten seconds earlier, so nobody is overtaken for ever.
 */
export class WaitingLines {
  readonly #store: Store;
  readonly #seats: number;
  readonly #recheckMs: number;
  readonly #lines = new Map<string, Waiter[]>();
  #seated = 0;

  /** `recheckMs`: how often to ask again where others may give back without waking anyone here. */
  constructor(store: Store, maxWaiting: number, recheckMs = LONGEST_TIMER) {
    this.#store = store;
    this.#seats = maxWaiting;
    this.#recheckMs = recheckMs;
  }

  wait(charges: readonly Charge[], options: LineOptions): Promise<readonly RuleDecision[]> {
    const { signal, timeoutMs, priority = 0 } = options;
    if (timeoutMs !== undefined) wholeNumber("INVALID_OPTION", "timeoutMs", timeoutMs, 1, LONGEST_TIMER);
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new SluiceError("INVALID_OPTION", `signal must be an AbortSignal; got ${show(signal)}.`);
    }
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiter = new Waiter(charges, priority, options.hopeless);
      const abort = () => waiter.refuse(signal?.reason);
      const timer =
        timeoutMs && setTimeout(() => waiter.refuse(timedOut(timeoutMs, waiter.denial)), timeoutMs);
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
        if (!waiter.present) return;
        waiter.present = false;
        if (waiter.seated) this.#seated--;
        waiter.wake();
        this.#remove(waiter);
      };
      waiter.admit = (rules) => {
        leave();
        resolve(rules);
      };
      waiter.refuse = (reason) => {
        leave();
        reject(reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#insert(waiter);
      if (!this.#mayAsk(waiter)) this.#seat(waiter);
      void this.#serve(waiter);
    });
  }

  /** Something was given back at these charges' places: whoever stands there asks again at once. */
  wake(charges: readonly Charge[]): void {
    for (const charge of charges) {
      const place = placeOf(charge);
      this.#lines
        .get(place)
        ?.find(({ stands }) => stands.has(place))
        ?.wake();
    }
  }

  close(): void {
    const waiters = new Set([...this.#lines.values()].flat());
    for (const waiter of waiters) {
      waiter.refuse(new SluiceError("CLOSED", "The limiter was closed while this call waited."));
    }
  }

  async #serve(waiter: Waiter): Promise<void> {
    while (waiter.present) {
      if (!this.#mayAsk(waiter)) {
        this.#stand(waiter, NOWHERE);
        waiter.barred = true;
        await waiter.sleep();
        continue;
      }
      waiter.barred = false;
      this.#stand(waiter, new Set(waiter.places));
      try {
        const rules = await this.#store.decide(waiter.charges, true);
        const waitMs = Math.max(...rules.map((rule) => rule.retryAfterMs));
        if (waitMs === 0 && waiter.present) waiter.admit(rules);
        else if (waitMs === 0) await this.#giveBack(waiter.charges, rules);
        else if (waiter.present) {
          waiter.denial = rules;
          const reason = waiter.hopeless(rules);
          if (reason !== undefined) waiter.refuse(reason);
          if (reason !== undefined || !this.#seat(waiter)) continue;
          this.#stand(waiter, new Set(waiter.places.filter((_, c) => !rules[c].allowed)));
          await waiter.sleep(Math.min(napOf(rules, waitMs), this.#recheckMs));
        }
      } catch (error) {
        waiter.refuse(error);
      }
    }
  }

  /** Whether nobody ahead of it bars one of its places. */
  #mayAsk(waiter: Waiter): boolean {
    return waiter.places.every((place) => {
      for (const ahead of this.#lines.get(place) ?? []) {
        if (ahead === waiter) return true;
        if (ahead.stands.has(place)) return false;
      }
      return true;
    });
  }

  /** Bars these places to those behind the waiter, and lets the next one ask where it barred others before. */
  #stand(waiter: Waiter, places: ReadonlySet<string>): void {
    const left = [...waiter.stands].filter((place) => !places.has(place));
    waiter.stands = places;
    for (const place of left) this.#callNext(place);
  }

  /** Wakes the first in the line that was barred and may ask now, if any. */
  #callNext(place: string): void {
    for (const waiter of this.#lines.get(place) ?? []) {
      if (waiter.stands.has(place)) return;
      if (!waiter.barred || !this.#mayAsk(waiter)) continue;
      waiter.stands = new Set(waiter.places);
      waiter.wake();
      return;
    }
  }

  #insert(waiter: Waiter): void {
    for (const place of waiter.places) {
      const line = this.#lines.get(place) ?? [];
      this.#lines.set(place, line);
      let n = line.length;
      while (n > 0 && line[n - 1].rank > waiter.rank) n--;
      line.splice(n, 0, waiter);
    }
  }

  #remove(waiter: Waiter): void {
    for (const place of waiter.places) {
      const line = this.#lines.get(place) ?? [];
      line.splice(line.indexOf(waiter), 1);
      if (line.length === 0) this.#lines.delete(place);
    }
    this.#stand(waiter, NOWHERE);
  }

  /** Gives the waiter a seat, but never the last one while one ahead of it has none yet. */
  #seat(waiter: Waiter): boolean {
    if (waiter.seated) return true;
    const isBehind = waiter.places.some((place) => {
      const head = this.#lines.get(place)?.[0];
      return head !== undefined && head !== waiter && !head.seated;
    });
    if (this.#seated + (isBehind ? 1 : 0) >= this.#seats) {
      waiter.refuse(
        new SluiceError(
          "QUEUE_FULL",
          `${this.#seats} calls are waiting already; raise maxWaiting or shed load.`,
        ),
      );
      return false;
    }
    this.#seated++;
    waiter.seated = true;
    return true;
  }

  /** The waiter left while the store was answering: what it took is not its own any more. */
  async #giveBack(charges: readonly Charge[], rules: readonly RuleDecision[]): Promise<void> {
    await this.#store.settle(
      settlementsOf(charges, rules, ({ look }) => (look === true ? undefined : { actual: 0 })),
    );
    this.wake(charges);
  }
}

/** An outage may be over any time, so what a policy denied is asked again before long. */
function napOf(rules: readonly RuleDecision[], waitMs: number): number {
  return rules.some((rule) => rule.degraded !== undefined) ? Math.min(waitMs, DEGRADED_NAP_MS) : waitMs;
}

/** Where a charge is counted. Paths hold no line break. */
function placeOf({ rule, key }: Charge): string {
  return `${rule.path}\n${key}`;
}

function timedOut(timeoutMs: number, denial: readonly RuleDecision[] | undefined): SluiceError {
  const decision = denial && combine(denial);
  const by = decision ? ` by rule "${decision.rule}"` : "";
  return new SluiceError(
    "TIMEOUT",
    `Not admitted${by} within ${timeoutMs} ms; wait longer or ask for less.`,
    decision && { decision },
  );
}
