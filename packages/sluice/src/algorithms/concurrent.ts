/**
 * Concurrent: how many slots are held at the same time, each holder on a lease of its own.
 *
 * Guarantee: exact. At most `limit` slots are held at any time, and never a refusal while enough are
 * free. A slot is free again when its holder gives it back, or else when the lease ends, so a crashed
 * holder leaks nothing. A lease that has not ended can be renewed.
 * Cost: one small object per holder. A decision takes O(1), and more only for leases that ended by
 * themselves; a settlement takes O(holders).
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";
import { Holders } from "./holders.js";

export const concurrent: Algorithm<Rule, (Holders | undefined)[]> = {
  prepare: (rule) => rule,
  page: (_rule, keys) => new Array(keys).fill(undefined),
  clear(_rule, page, i) {
    page[i] = undefined;
  },

  latest: (rule, page, i) => Math.max(0, (page[i]?.endsAt ?? 0) - rule.window),

  remaining: (rule, page, i, now) => Math.max(0, rule.limit - (page[i]?.cost(now) ?? 0)),

  wait(rule, page, i, now, cost) {
    if (cost > rule.limit) return Infinity;
    let over = (page[i]?.cost(now) ?? 0) + cost - rule.limit;
    for (const lease of page[i]?.live(now) ?? []) {
      over -= lease.cost;
      if (over <= 0) return lease.endsAt - now;
    }
    return Infinity;
  },

  charge(rule, page, i, now, at, cost, id = "") {
    if (cost <= 0) return;
    page[i] ??= new Holders();
    page[i].dropEnded(now);
    page[i].add({ id, at, endsAt: at + rule.window, cost });
  },

  settle(rule, page, i, now, at, id, actual) {
    const own = page[i]?.take(id, now);
    const { endsAt } = own ?? { endsAt: at + rule.window };
    if (own !== undefined && actual === undefined) page[i]?.add({ ...own, endsAt: now + rule.window });
    else if (actual && at <= now && now < endsAt)
      concurrent.charge(rule, page, i, now, endsAt - rule.window, actual, id);
    if (page[i]?.isEmpty) page[i] = undefined;
    return own !== undefined || actual !== undefined;
  },

  expiresAt: (_rule, page, i) => page[i]?.endsAt ?? 0,

  held(rule, page, i, now) {
    const live = page[i]?.live(now) ?? [];
    return {
      count: page[i]?.cost(now) ?? 0,
      oldestAt: live.at(0) && live[0].endsAt - rule.window,
      newestAt: live.at(-1) && live[live.length - 1].endsAt - rule.window,
    };
  },

  count: () => 0,
  resolutionMs: () => 0,
  coversFrom: (_rule, now) => now,
};
