// @ts-check
import { START, setTime } from "../lib/traffic.mjs";

const rule = { limit: 10, windowMs: 60_000 };
const BURSTS = [59, 61];
const SECONDS = [58, 59, 60, 61, 62, 90, 118, 119, 120, 121];

/**
 * The experiment of the notes: 10 per minute, 10 calls at second 59, 10 more at second 61.
 * @param {readonly import("./play.mjs").Candidate[]} candidates
 * @returns {Promise<import("../lib/report.mjs").Section>}
 */
export async function boundarySection(candidates) {
  const rows = [];
  for (const candidate of candidates) {
    const decide = candidate.make(rule);
    /** @type {number[]} */
    const admitted = [];
    for (const second of BURSTS) {
      for (let n = 0; n < 10; n++) {
        setTime(START + second * 1000);
        if (await decide("client", 1)) admitted.push(second);
      }
    }
    const within = (/** @type {number} */ now) => admitted.filter((at) => at <= now && now - at < 60).length;
    rows.push({
      id: candidate.id,
      label: candidate.label,
      cells: Object.fromEntries(SECONDS.map((second) => [String(second), within(second)])),
    });
  }
  return {
    id: "accuracy-boundary",
    title: "The boundary, fixed beside sliding",
    note: "The notes' experiment: a limit of 10 per minute, 10 calls at second 59 and 10 more at second 61. How many admitted calls the last minute holds, by second.",
    columns: SECONDS.map((second) => ({ key: String(second), title: `${second} s`, unit: "count" })),
    rows,
    plot: {
      kind: "lines",
      caption: "Admitted in the last 60 s; the limit is 10",
      only: ["slidingLog", "fixedWindow", "leakyBucket"],
      linearX: true,
      linearY: true,
      mark: { at: 10, text: "limit" },
    },
  };
}
