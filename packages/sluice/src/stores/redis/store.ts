import type { RuleDecision, RuleStatus } from "../../decision.js";
import { checkNames, SluiceError, show } from "../../errors.js";
import type { Charge, Count, Entry, Settlement, Store } from "../../store.js";
import { Batcher } from "./batch.js";
import { type Connection, connect, type RedisClient } from "./client.js";
import { readCounts, readDecisions, readEntries, readSettled, readStatuses } from "./reply.js";

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
  checkNames("INVALID_OPTION", "redisStore", options, ["prefix", "clock"]);
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
  /** One batcher per partition where keys are spread over nodes, since a script's keys must be in one slot. */
  readonly #batchers = new Map<string, Batcher>();

  constructor(connection: Connection, prefix: string, now: () => string) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.#now = now;
  }

  decide(charges: readonly Charge[], commit: boolean): Promise<readonly RuleDecision[]> {
    return this.#batcher(charges).ask(commit ? "a" : "p", charges, readDecisions);
  }

  settle(settlements: readonly Settlement[]): Promise<boolean> {
    return this.#batcher(settlements).ask("s", settlements, readSettled);
  }

  status(charges: readonly Charge[]): Promise<readonly RuleStatus[]> {
    return this.#batcher(charges).ask("t", charges, readStatuses);
  }

  count(charges: readonly Charge[], from: number, to: number): Promise<readonly (Count | undefined)[]> {
    const asked = charges.map((charge) => ({ ...charge, cost: from, at: to }));
    return this.#batcher(asked).ask("c", asked, readCounts);
  }

  entries(charge: Charge, from: number, to: number, most: number): Promise<readonly Entry[]> {
    const asked = [{ ...charge, cost: from, at: to, id: String(most) }];
    return this.#batcher(asked).ask("e", asked, readEntries);
  }

  reset(charges: readonly Charge[]): Promise<void> {
    return this.#batcher(charges).ask("d", charges, () => undefined);
  }

  /** The client is its owner's to close. */
  close(): void {}

  #batcher(charges: readonly Charge[]): Batcher {
    const partition = this.#connection.cluster ? charges[0].partition : "";
    let batcher = this.#batchers.get(partition);
    if (batcher === undefined) {
      const forget = () => this.#batchers.delete(partition);
      batcher = new Batcher(this.#connection, this.#prefix, this.#now, forget);
      this.#batchers.set(partition, batcher);
    }
    return batcher;
  }
}
