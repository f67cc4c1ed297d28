// @ts-check
import { ratio } from "./stats.mjs";

/**
 * @typedef {import("./race.mjs").Lap} Lap
 * @typedef {import("./report.mjs").Section} Section
 */

/**
 * Decisions per second, each beside the first.
 * @param {Lap[]} laps
 * @param {Pick<Section, "id" | "title" | "note">} head
 * @returns {Section}
 */
export function speedSection(laps, head) {
  const first = laps[0]?.wallNs ?? [];
  return {
    ...head,
    columns: [
      { key: "perSecond", title: "decisions/s", unit: "perSecond" },
      { key: "times", title: "times the first", unit: "ratio" },
      { key: "busy", title: "CPU at work", unit: "share" },
    ],
    rows: laps.map((lap) => ({
      id: lap.id,
      label: lap.label,
      cells: {
        perSecond: lap.perSecond,
        times: ratio(first, lap.wallNs),
        busy: busyOf(lap),
      },
    })),
  };
}

/** Part of the time that this process was at work; with its collector's threads, more than all. @param {Lap} lap */
export function busyOf({ cpuNs, wallNs }) {
  return ratio(cpuNs, wallNs);
}
