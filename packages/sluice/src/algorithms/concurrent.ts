/**
 * Concurrent: how many slots are held at the same time, each holder on a lease of its own.
 *
 * Guarantee: exact. At most `limit` slots are held at any time, and never a refusal while enough are
 * free. A slot is free again when its holder gives it back, or else when the lease ends, so a crashed
 * holder leaks nothing. A settlement of 0 renews a lease that has not ended.
 * Cost: one small object per holder. A decision takes O(1), and more only for leases that ended by
 * themselves; a settlement takes O(holders).
 */
import type { Rule } from "../rule.js";
import type { Algorithm } from "./algorithm.js";

interface Lease {
  readonly id: string;
  /** When its slots are free, whatever the holder does. */
  endsAt: number;
  slots: number;
}

/** The leases of one key, in the order in which they end, and the slots of all of them. */
interface Holders {
  readonly leases: Lease[];
  slots: number;
}

export const concurrent: Algorithm<Rule, (Holders | undefined)[]> = {
  prepare: (rule) => rule,
  page: (_rule, keys) => new Array(keys).fill(undefined),
  clear(_rule, page, i) {
    page[i] = undefined;
  },

  latest(rule, page, i) {
    const newest = page[i]?.leases.at(-1);
    return newest === undefined ? 0 : newest.endsAt - rule.window;
  },

  remaining: (rule, page, i, now) => Math.max(0, rule.limit - taken(page[i], now)),

  wait(rule, page, i, now, cost) {
    if (cost > rule.limit) return Infinity;
    let over = taken(page[i], now) + cost - rule.limit;
    for (const { endsAt, slots } of page[i]?.leases ?? []) {
      if (endsAt <= now) continue;
      over -= slots;
      if (over <= 0) return endsAt - now;
    }
    return Infinity;
  },

  charge(rule, page, i, now, at, cost, id = "") {
    const holders = page[i] ?? { leases: [], slots: 0 };
    dropEnded(holders, now);
    const own = holders.leases.findLastIndex((lease) => lease.id === id);
    if (own >= 0 && cost === 0) renew(holders.leases, own, now + rule.window);
    else if (own >= 0) resize(holders, own, cost);
    else if (cost > 0 && now < at + rule.window) {
      holders.slots += cost;
      insert(holders.leases, { id, endsAt: at + rule.window, slots: cost });
    }
    page[i] = holders.slots === 0 ? undefined : holders;
  },

  expiresAt: (_rule, page, i) => page[i]?.leases.at(-1)?.endsAt ?? 0,

  held(rule, page, i, now) {
    const count = taken(page[i], now);
    const oldest = page[i]?.leases.find(({ endsAt }) => endsAt > now);
    if (oldest === undefined) return { count: 0, oldestAt: undefined, newestAt: undefined };
    return { count, oldestAt: oldest.endsAt - rule.window, newestAt: concurrent.latest(rule, page, i) };
  },

  count: () => 0,
  resolutionMs: () => 0,
  coversFrom: (_rule, now) => now,
};

function taken(holders: Holders | undefined, now: number): number {
  if (holders === undefined) return 0;
  let { slots } = holders;
  for (const lease of holders.leases) {
    if (lease.endsAt > now) break;
    slots -= lease.slots;
  }
  return slots;
}

function dropEnded(holders: Holders, now: number): void {
  let ended = 0;
  for (; holders.leases[ended]?.endsAt <= now; ended++) holders.slots -= holders.leases[ended].slots;
  if (ended > 0) holders.leases.splice(0, ended);
}

function renew(leases: Lease[], own: number, endsAt: number): void {
  const [lease] = leases.splice(own, 1);
  insert(leases, { ...lease, endsAt });
}

function resize(holders: Holders, own: number, cost: number): void {
  const lease = holders.leases[own];
  const slots = Math.max(0, lease.slots + cost);
  holders.slots += slots - lease.slots;
  lease.slots = slots;
  if (slots === 0) holders.leases.splice(own, 1);
}

/** Nearly always at the end: only what is charged late ends before another. */
function insert(leases: Lease[], lease: Lease): void {
  let place = leases.length;
  while (place > 0 && leases[place - 1].endsAt > lease.endsAt) place--;
  leases.splice(place, 0, lease);
}
