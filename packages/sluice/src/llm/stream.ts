import { type HookOptions, quietly } from "./hook.js";
import type { BudgetReservation } from "./reservation.js";
import type { StreamTally } from "./tally.js";

/**
 * Hands a stream on, each item through `take`, and settles its reservation once: with what was told when
 * it ended, or with what had come when it was aborted or broke.
 */
export function settledStream<In, Out>(
  source: ReadableStream<In>,
  reservation: BudgetReservation,
  tally: StreamTally,
  options: HookOptions,
  take: (item: In | undefined) => Out[],
): ReadableStream<Out> {
  const reader = source.getReader();
  const settle = (isWhole: boolean) =>
    quietly(options, async () => {
      const usage = tally.whole ?? (isWhole ? undefined : tally.partial(reservation.reserved));
      if (usage === undefined) options.onUnknownUsage?.(undefined);
      await reservation.settle(usage);
    });
  return new ReadableStream<Out>({
    async pull(controller) {
      try {
        for (let sent = 0; sent === 0; ) {
          const { done, value } = await reader.read();
          const items = take(done ? undefined : value);
          if (done) await settle(true);
          for (const item of items) controller.enqueue(item);
          sent += items.length;
          if (done) {
            controller.close();
            return;
          }
        }
      } catch (error) {
        await settle(false);
        controller.error(error);
      }
    },
    async cancel(reason) {
      await settle(false);
      await reader.cancel(reason);
    },
  });
}
