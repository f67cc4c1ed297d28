import { algorithmOf } from "../../algorithms/index.js";
import type { RuleDecision, RuleStatus } from "../../decision.js";
import { SluiceError, show } from "../../errors.js";
import type { Charge, Count, Entry, Settlement, Store, StoredRule } from "../../store.js";
import { Batcher } from "./batch.js";
import { type Operation, type Unit, unitsOf } from "./call.js";
import { type Connection, connect, type RedisClient } from "./client.js";

/** What `redisStore` takes besides the client. */
export interface RedisStoreOptions {
  /** What all keys begin with: "sluice:" unless told. */
  readonly prefix?: string;
  /** Milliseconds since the epoch, for tests. Without it, Redis' own time decides. */
  readonly clock?: () => number;
}

/**
 * Shares limits between any number of processes: every decision is one atomic step of Redis, by
 * Redis' clock. Takes a client or cluster of ioredis or node-redis as it is, or `{ evalsha, eval }`;
 * the client stays its owner's to close.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): Store {
  const { prefix = "sluice:", clock } = options;
  if (typeof prefix !== "string" || /[{}]/.test(prefix)) {
    throw new SluiceError("INVALID_OPTION", `prefix must be a string without { and }; got ${show(prefix)}.`);
  }
  if (clock !== undefined && typeof clock !== "function") {
    throw new SluiceError(
      "INVALID_OPTION",
      `clock must be a function that returns milliseconds; got ${show(clock)}.`,
    );
  }
  return new RedisStore(connect(client), prefix, clock === undefined ? () => "" : () => String(clock()));
}

class RedisStore implements Store {
  readonly sync = false;
  readonly #connection: Connection;
  readonly #prefix: string;
  readonly #now: () => string;
  /** One batcher per partition where keys are spread over nodes, since a script's keys must be on one. */
  readonly #batchers = new Map<string, Batcher>();

  constructor(connection: Connection, prefix: string, now: () => string) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#now = now;
  }

  decide(charges: readonly Charge[], commit: boolean): Promise<readonly RuleDecision[]> {
    return this.#call(commit ? "a" : "p", charges, perRule(charges, 4, readDecision), (c) =>
      charges[c].look === true ? 1 : 0,
    );
  }

  settle(settlements: readonly Settlement[]): Promise<boolean> {
    return this.#call(
      "s",
      settlements,
      (units, reply, start) => units.every((_, u) => Number(reply[start + u]) === 1),
      (c) => settlements[c].at,
      (c) => xOf(settlements[c]),
    );
  }

  status(charges: readonly Charge[]): Promise<readonly RuleStatus[]> {
    return this.#call("t", charges, perRule(charges, 5, readStatus));
  }

  count(charges: readonly Charge[], from: number, to: number): Promise<readonly (Count | undefined)[]> {
    const asked = charges.map((charge) => ({ ...charge, cost: from }));
    const read = ({ rule }: Charge, reply: readonly unknown[], start: number) =>
      readCount(rule, from, to, reply, start);
    return this.#call("c", asked, perRule(asked, 3, read), () => to);
  }

  entries(charge: Charge, from: number, to: number, most: number): Promise<readonly Entry[]> {
    const read = (_units: readonly Unit[], reply: readonly unknown[], start: number) =>
      readEntries(reply[start]);
    return this.#call("e", [{ ...charge, cost: from, id: String(most) }], read, () => to);
  }

  async reset(charges: readonly Charge[]): Promise<void> {
    await this.#call("d", charges, () => undefined);
  }

  /** The client is its owner's to close. */
  close(): void {}

  async #call<T>(
    operation: Operation,
    charges: readonly Charge[],
    read: (units: readonly Unit[], reply: readonly unknown[], start: number) => T,
    y: (c: number) => number = () => 0,
    x: (c: number) => number = (c) => charges[c].cost,
  ): Promise<T> {
    const units = unitsOf(this.#prefix, charges, x, y);
    const partition = this.#connection.cluster ? charges[0].partition : "";
    const batcher = this.#batchers.get(partition) ?? new Batcher(this.#connection, this.#now);
    this.#batchers.set(partition, batcher);
    try {
      return await batcher.submit({ operation, units }, (reply, start) => read(units, reply, start));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new SluiceError("STORE_FAILED", `Redis did not decide: ${reason}`, { cause: error });
    } finally {
      if (batcher.idle && this.#batchers.get(partition) === batcher) this.#batchers.delete(partition);
    }
  }
}

/** The difference that a settlement makes, or what it really was where the rule tells held and counted apart. */
function xOf({ rule, id, cost, actual }: Settlement): number {
  if (rule.lease !== undefined && id !== undefined) return actual ?? -1;
  return actual === undefined ? 0 : actual - cost;
}

/** Reads `width` values per rule, which come unit by unit, into the order of the charges. */
function perRule<T>(
  charges: readonly Charge[],
  width: number,
  read: (charge: Charge, reply: readonly unknown[], start: number) => T,
): (units: readonly Unit[], reply: readonly unknown[], start: number) => readonly T[] {
  return (units, reply, start) => {
    const answers = new Array<T>(charges.length);
    let at = start;
    for (const { members } of units) {
      for (const member of members) {
        answers[member] = read(charges[member], reply, at);
        at += width;
      }
    }
    return answers;
  };
}

function readDecision({ rule }: Charge, reply: readonly unknown[], start: number): RuleDecision {
  const wait = Number(reply[start + 1]);
  return {
    rule: rule.name,
    allowed: wait === 0,
    limit: rule.limit,
    remaining: Number(reply[start]),
    retryAfterMs: wait < 0 ? Infinity : wait,
    resetAfterMs: Number(reply[start + 2]),
    at: Number(reply[0]) + Number(reply[start + 3]),
  };
}

function readStatus({ rule }: Charge, reply: readonly unknown[], start: number): RuleStatus {
  const [count, remaining, oldest, newest, resetAfterMs] = reply.slice(start, start + 5).map(Number);
  return {
    rule: rule.name,
    count,
    limit: rule.limit,
    remaining,
    oldestAt: oldest < 0 ? undefined : oldest,
    newestAt: newest < 0 ? undefined : newest,
    resetAfterMs,
  };
}

/** Where the algorithm keeps no history there is no count; where the period is not kept, an empty one. */
function readCount(
  rule: StoredRule,
  from: number,
  to: number,
  reply: readonly unknown[],
  start: number,
): Count | undefined {
  const { prepare, resolutionMs: resolution } = algorithmOf(rule);
  const resolutionMs = resolution(prepare(rule));
  if (resolutionMs === 0) return undefined;
  const [count, first, last] = reply.slice(start, start + 3).map(Number);
  return last < first ? { count: 0, from, to, resolutionMs } : { count, from: first, to: last, resolutionMs };
}

/** From "cost:unique:id" and times in turn, newest first. */
function readEntries(list: unknown): readonly Entry[] {
  const entries: Entry[] = [];
  const values = (list as readonly unknown[]).map(String);
  for (let v = 0; v < values.length; v += 2) {
    const [, cost, id] = /^(\d+):(?:[^:]*):(.*)$/s.exec(values[v]) ?? ["", "0", ""];
    entries.push({ at: Number(values[v + 1]), id, cost: Number(cost) });
  }
  return entries.reverse();
}
