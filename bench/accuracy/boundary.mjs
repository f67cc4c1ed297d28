// @ts-check
import { START } from "../lib/traffic.mjs";
import { play } from "./play.mjs";

const BURSTS = [59, 61];
const SECONDS = [58, 59, 60, 61, 62, 90, 118, 119, 120, 121];

/** @type {import("./scenarios.mjs").Scenario} */
const scenario = {
  id: "boundary-of-the-notes",
  title: "The boundary, fixed beside sliding",
  note: "The notes' experiment: a limit of 10 per minute, 10 calls at second 59 and 10 more at second 61. How many admitted calls the last minute holds, by second.",
  limit: 10,
  windowMs: 60_000,
  arrivals: BURSTS.flatMap((second) =>
    Array.from({ length: 10 }, () => ({ at: START + second * 1000, key: "client", cost: 1, node: 0 })),
  ),
};

/**
 * @param {readonly import("./play.mjs").Candidate[]} candidates
 * @param {readonly import("ioredis").Redis[]} connections
 * @returns {Promise<import("../lib/report.mjs").Section>}
 */
export async function boundarySection(candidates, connections) {
  const rows = [];
  for (const candidate of candidates) {
    /** @type {number[]} */
    const admitted = [];
    await play(candidate, scenario, connections, ({ at }, allowed) => {
      if (allowed) admitted.push((at - START) / 1000);
    });
    const within = (/** @type {number} */ now) => admitted.filter((at) => at <= now && now - at < 60).length;
    rows.push({
      id: candidate.id,
      label: candidate.label,
      cells: Object.fromEntries(SECONDS.map((second) => [String(second), within(second)])),
    });
  }
  return {
    id: "accuracy-boundary",
    title: scenario.title,
    note: scenario.note,
    columns: SECONDS.map((second) => ({ key: String(second), title: `${second} s`, unit: "count" })),
    rows,
    plot: {
      kind: "lines",
      caption: "Admitted in the last 60 s; the limit is 10",
      only: ["slidingLog", "fixedWindow", "leakyBucket"],
      linearX: true,
      linearY: true,
      steps: true,
      mark: { at: 10, text: "limit" },
    },
  };
}
