import type { Subject } from "./amounts.js";
import type { Budget, ReserveOptions } from "./budget.js";
import { type HeaderOf, pauseFor } from "./headers.js";

/** Who calls: values, or functions that are asked at each call. */
export type HookSubject = Readonly<
  Record<string, string | number | undefined | (() => string | number | undefined)>
>;

export interface HookOptions extends Pick<ReserveOptions, "timeoutMs" | "priority"> {
  /** What an upstream 429 pauses; by default the provider and the model. */
  readonly upstream?: string;
  /** Told when a response has no usage that can be read: what was reserved then stays charged. */
  readonly onUnknownUsage?: (response: unknown) => void;
  /** Told when the store fails after the call was made: the answer is handed out all the same. */
  readonly onError?: (error: unknown) => void;
}

export function resolveSubject(subject: HookSubject): Subject {
  return Object.fromEntries(
    Object.entries(subject).map(([part, value]) => [part, typeof value === "function" ? value() : value]),
  );
}

/** Runs what follows a call. The answer is there and paid for, so a failing store must not lose it. */
export async function quietly(options: HookOptions, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    options.onError?.(error);
  }
}

/** Pauses the upstream where its answer asks for that. */
export async function learnFrom(
  budget: Budget,
  subject: Subject,
  options: HookOptions,
  status: number,
  headerOf: HeaderOf,
): Promise<void> {
  const ms = pauseFor(status, headerOf);
  const { upstream } = subject;
  if (ms !== undefined && upstream !== undefined) {
    await quietly(options, () => budget.pause(upstream, ms, subject));
  }
}
