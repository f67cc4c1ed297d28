import { algorithmOf } from "../../algorithms/index.js";
import type { RuleDecision, RuleStatus } from "../../decision.js";
import type { Count, Entry, StoredRule } from "../../store.js";
import type { Question } from "./call.js";

/** What the script answered to a batch: the time, then flat each call's values, read in their order. */
export class Reply {
  readonly now: number;
  readonly #values: readonly unknown[];
  #next = 1;

  constructor(values: readonly unknown[]) {
    this.#values = values;
    this.now = Number(values[0]);
  }

  take(): unknown {
    return this.#values[this.#next++];
  }

  number(): number {
    return Number(this.#values[this.#next++]);
  }
}

/** The answers come part by part, and within a part rule by rule: in the order of the charges again. */
function perRule<T>({ parts, charges }: Question, read: (rule: StoredRule) => T): readonly T[] {
  const answers = new Array<T>(charges.length);
  for (const { members } of parts) for (const c of members) answers[c] = read(charges[c].rule);
  return answers;
}

/** A part begins with what remains where it was taken now; else with how far its time is ahead, negated, less one. */
export function readDecisions(reply: Reply, { parts, charges }: Question): readonly RuleDecision[] {
  const decisions = new Array<RuleDecision>(charges.length);
  for (const { members } of parts) {
    let remaining = reply.number();
    const taken = remaining >= 0;
    const at = taken ? reply.now : reply.now - 1 - remaining;
    for (let m = 0; m < members.length; m++) {
      const { rule } = charges[members[m]];
      if (!taken || m > 0) remaining = reply.number();
      const wait = taken ? 0 : reply.number();
      decisions[members[m]] = {
        rule: rule.name,
        allowed: wait === 0,
        limit: rule.limit,
        remaining,
        retryAfterMs: wait < 0 ? Infinity : wait,
        resetAfterMs: taken ? rule.window : reply.number(),
        at,
      };
    }
  }
  return decisions;
}

/** Whether no lease was to begin anew that has ended. */
export function readSettled(reply: Reply, { parts }: Question): boolean {
  return parts.map(() => reply.number()).every((held) => held === 1);
}

export function readStatuses(reply: Reply, question: Question): readonly RuleStatus[] {
  return perRule(question, (rule) => {
    const [count, remaining, oldest, newest] = [
      reply.number(),
      reply.number(),
      reply.number(),
      reply.number(),
    ];
    return {
      rule: rule.name,
      count,
      limit: rule.limit,
      remaining,
      oldestAt: oldest < 0 ? undefined : oldest,
      newestAt: newest < 0 ? undefined : newest,
      resetAfterMs: reply.number(),
    };
  });
}

/** Where the algorithm keeps no history there is no count. */
export function readCounts(reply: Reply, question: Question): readonly (Count | undefined)[] {
  return perRule(question, (rule) => {
    const [count, first, last] = [reply.number(), reply.number(), reply.number()];
    const { prepare, resolutionMs: resolution } = algorithmOf(rule);
    const resolutionMs = resolution(prepare(rule));
    if (resolutionMs === 0) return undefined;
    return { count, from: first, to: last, resolutionMs };
  });
}

/** From "cost:unique:id" and times in turn, newest first. */
export function readEntries(reply: Reply): readonly Entry[] {
  const entries: Entry[] = [];
  const values = (reply.take() as readonly unknown[]).map(String);
  for (let v = 0; v < values.length; v += 2) {
    const [, cost, id] = /^(\d+):(?:[^:]*):(.*)$/s.exec(values[v]) ?? ["", "0", ""];
    entries.push({ at: Number(values[v + 1]), id, cost: Number(cost) });
  }
  return entries.reverse();
}
