/**
 * A window with a lease: what is reserved is held beside what the window counts, until it is settled.
 *
 * Guarantee: that of the window's own algorithm, with what is held counted from its reservation on. A holder that
 * neither settles nor renews within its lease has given back all it held, so a crash leaks nothing; one that settles
 * later is charged all the same, at the reservation's own time. What is charged without an id is never held.
 * Cost: that of the algorithm, and one small object per holder. A decision takes O(1) more, one that is denied
 * O(holders), and a settlement O(holders).
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";
import { Holders } from "./holders.js";

interface LeasedRule<Params> {
  readonly params: Params;
  readonly window: number;
  readonly lease: number;
}

interface LeasedPage<Page> {
  readonly counted: Page;
  readonly holders: (Holders | undefined)[];
}

/** The algorithm over all that is counted for good, with leases beside it. */
export function leased<Params, Page>(
  inner: Algorithm<Params, Page>,
): Algorithm<LeasedRule<Params>, LeasedPage<Page>> {
  return {
    prepare: (rule: Rule) => ({
      params: inner.prepare(rule),
      window: rule.window,
      lease: rule.lease ?? rule.window,
    }),
    page: ({ params }, keys) => ({
      counted: inner.page(params, keys),
      holders: new Array(keys).fill(undefined),
    }),
    clear({ params }, { counted, holders }, i) {
      inner.clear(params, counted, i);
      holders[i] = undefined;
    },

    // What is held counts until it ends, however early it is: it need not keep the clock from stepping back.
    latest: ({ params }, { counted }, i) => inner.latest(params, counted, i),

    remaining({ params }, { counted, holders }, i, now) {
      return Math.max(0, inner.remaining(params, counted, i, now) - (holders[i]?.cost(now) ?? 0));
    },

    /**
     * Leases end one after the other. After the nth, the cost must fit beside what the others hold: that is from
     * some time on, which comes earlier the more have ended. The first n for which it comes before the next end is it.
     */
    wait({ params }, { counted, holders }, i, now, cost) {
      const leases = holders[i]?.live(now) ?? [];
      const besides = [cost];
      for (let n = leases.length - 1; n >= 0; n--) besides.push((besides.at(-1) ?? 0) + leases[n].cost);
      besides.reverse();
      const room = inner.remaining(params, counted, i, now);
      const fitsAt = (n: number) =>
        besides[n] <= room ? now : now + inner.wait(params, counted, i, now, besides[n]);
      let [low, high] = [0, leases.length];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (fitsAt(middle) < leases[middle].endsAt) high = middle;
        else low = middle + 1;
      }
      return Math.max(fitsAt(low), low === 0 ? now : leases[low - 1].endsAt) - now;
    },

    charge({ params, lease }, { counted, holders }, i, now, at, cost, id = "") {
      if (id === "") return inner.charge(params, counted, i, now, at, cost);
      if (cost === 0) return;
      holders[i] ??= new Holders();
      holders[i].dropEnded(now);
      holders[i].add({ id, at, endsAt: at + lease, cost });
    },

    settle({ params, window, lease }, { counted, holders }, i, now, at, id, actual) {
      const own = holders[i]?.take(id, now);
      const time = own === undefined ? now : Math.max(now, at);
      const isOver = time >= at + window;
      if (own !== undefined && actual === undefined && !isOver) {
        holders[i]?.add({ ...own, endsAt: Math.min(now + lease, at + window) });
      }
      if (holders[i]?.isEmpty) holders[i] = undefined;
      if (actual && at <= time) inner.charge(params, counted, i, time, at, actual);
      return actual !== undefined || own !== undefined || isOver;
    },

    expiresAt({ params }, { counted, holders }, i) {
      return Math.max(inner.expiresAt(params, counted, i), holders[i]?.endsAt ?? 0);
    },

    held({ params }, { counted, holders }, i, now) {
      const { count, oldestAt = Infinity, newestAt = 0 } = inner.held(params, counted, i, now);
      const leases = holders[i]?.live(now) ?? [];
      const oldest = Math.min(oldestAt, ...leases.map(({ at }) => at));
      if (oldest === Infinity) return { count, oldestAt: undefined, newestAt: undefined };
      return {
        count: count + (holders[i]?.cost(now) ?? 0),
        oldestAt: oldest,
        newestAt: Math.max(newestAt, ...leases.map(({ at }) => at)),
      };
    },

    count({ params }, { counted, holders }, i, now, from, to) {
      let count = inner.count(params, counted, i, now, from, to);
      for (const { at, cost } of holders[i]?.live(now) ?? []) if (from <= at && at <= to) count += cost;
      return count;
    },
    resolutionMs: ({ params }) => inner.resolutionMs(params),
    coversFrom: ({ params }, now) => inner.coversFrom(params, now),
  };
}
