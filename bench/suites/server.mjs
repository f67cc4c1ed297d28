// @ts-check
import { BATCH, measureServer } from "../../packages/server/bench/measure.mjs";

export const title = "The server";
export const about =
  "`@sluice/server` on memory beside a bare Fastify route that parses and answers the same JSON, and a bare grpc-js " +
  "service that answers the same messages: servers in processes of their own, asked in turns from one more on the " +
  "same machine. The last column compares what the servers themselves worked per answer.";

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ rounds, roundMs, onProgress }) {
  const { http, grpc, batched } = await measureServer({
    rounds: Math.min(rounds, 5),
    seconds: Math.max(0.2, roundMs / 20),
    warmups: roundMs < 10 ? 0 : 3,
    onProgress,
  });
  return {
    sections: [
      {
        id: "server",
        title: "Beside bare parts",
        note: `Requests per second with 32 connections (HTTP) or 128 calls under way (gRPC); decisions per second for batches of ${BATCH}.`,
        columns: [
          { key: "ours", title: "Sluice", unit: "perSecond" },
          { key: "theirs", title: "beside it", unit: "perSecond" },
          { key: "ratio", title: "ratio", unit: "ratio" },
          { key: "cpu", title: "ratio by CPU time", unit: "ratio" },
        ],
        rows: [
          { id: "acquire", label: "POST …/acquire, beside bare Fastify", cells: { ...http } },
          { id: "grpc", label: "ShouldRateLimit, beside bare grpc-js", cells: { ...grpc } },
          { id: "batch", label: `/v1/batch of ${BATCH}, beside one by one`, cells: { ...batched } },
        ],
      },
    ],
    targets: [
      target("server-acquire", "POST …/acquire beside a bare Fastify route", 0.75, http.ratio, "ratio"),
      target("server-grpc", "ShouldRateLimit beside a bare grpc-js service", 0.75, grpc.ratio, "ratio"),
      target("server-batch", `/v1/batch of ${BATCH} decisions`, 200_000, batched.ours, "perSecond"),
      target("server-batch-single", `/v1/batch of ${BATCH} beside one by one`, 20, batched.ratio, "ratio"),
    ],
  };
}

/**
 * @param {string} id
 * @param {string} claim
 * @param {number} bound
 * @param {number} value
 * @param {import("../lib/report.mjs").Unit} unit
 * @returns {import("../lib/report.mjs").Target}
 */
function target(id, claim, bound, value, unit) {
  return { id, claim, wanted: "at least", bound, value, unit };
}
