// @ts-check

import { loadNoteScripts } from "../contenders/notes.mjs";
import { startRedis } from "../lib/redis-server.mjs";
import { releaseClocks, virtualizeClocks } from "../lib/traffic.mjs";
import { boundarySection } from "./boundary.mjs";
import { candidates } from "./candidates.mjs";
import { cloudflareSection } from "./cloudflare.mjs";
import { Judge } from "./judge.mjs";
import { play } from "./play.mjs";
import { queueSection } from "./queues.mjs";
import { scenarios } from "./scenarios.mjs";

/**
 * @typedef {import("./judge.mjs").Judgement} Judgement
 * @typedef {import("./play.mjs").Candidate} Candidate
 * @typedef {import("./scenarios.mjs").Scenario} Scenario
 * @typedef {import("../lib/report.mjs").Section} Section
 * @typedef {{ candidate: Candidate, scenario: Scenario, judgement: Judgement, ideal: number }} Outcome
 */

const NODES = 4;

/** The rule itself, applied to what it has admitted: what an ideal limiter does. @type {Candidate} */
const ideal = {
  id: "ideal",
  label: "ideal",
  algorithm: "the oracle",
  nodes: "one",
  weights: true,
  make(rule) {
    const judge = new Judge(rule);
    return (key, cost) => {
      const allowed = judge.hasRoom(key, Date.now(), cost);
      judge.record(key, Date.now(), cost, allowed);
      return allowed;
    };
  },
};

/**
 * Plays every scenario to every limiter.
 * @param {object} [options]
 * @param {number} [options.scale] 1 for all of it, less for a shorter look
 * @param {(share: number, label: string) => void} [options.onProgress]
 * @returns {Promise<import("../lib/report.mjs").Measured & { outcomes: Outcome[] }>}
 */
export async function runLab({ scale = 1, onProgress = () => {} } = {}) {
  const server = await startRedis();
  const connections = Array.from({ length: NODES }, server.connect);
  await loadNoteScripts(server.connect());
  virtualizeClocks();
  /** @type {Outcome[]} */
  const outcomes = [];
  const all = scenarios(scale);
  const parts = all.length + 2; // and the queues, and Cloudflare's figure
  for (const [n, scenario] of all.entries()) {
    const { admitted } = await play(ideal, onOneNode(scenario), connections);
    for (const candidate of candidates.filter((candidate) => takesPart(candidate, scenario))) {
      onProgress(n / parts, scenario.id);
      const judgement = await play(candidate, scenario, connections);
      outcomes.push({ candidate, scenario, judgement, ideal: admitted });
    }
  }
  const boundary = await boundarySection(
    candidates.filter(({ nodes }) => nodes !== "several"),
    connections,
  );
  onProgress(all.length / parts, "queues");
  const queues = await queueSection(all);
  releaseClocks();
  await server.stop();
  onProgress(1 - 1 / parts, "Cloudflare's figure");
  return {
    sections: [
      summary(outcomes),
      boundary,
      ...all.map((scenario) =>
        scenarioSection(
          scenario,
          outcomes.filter((outcome) => outcome.scenario === scenario),
        ),
      ),
      queues,
      cloudflareSection(scale),
    ],
    targets: targets(outcomes),
    outcomes,
  };
}

/** @param {Candidate} candidate @param {Scenario} scenario */
function takesPart({ nodes, weights }, { arrivals, clockErrorsMs = [0] }) {
  const elsewhere = clockErrorsMs.length > 1 ? "one" : "several";
  return nodes !== elsewhere && (weights || arrivals.every(({ cost }) => cost === 1));
}

/** @param {Scenario} scenario @returns {Scenario} */
function onOneNode(scenario) {
  return {
    ...scenario,
    clockErrorsMs: [0],
    arrivals: scenario.arrivals.map((call) => ({ ...call, node: 0 })),
  };
}

/** @type {(outcome: Outcome) => Record<string, number>} */
function figures({ judgement, ideal, scenario }) {
  const { decisions, admitted, mostInWindow, wronglyAllowed, wronglyRefused, worstLockOutMs } = judgement;
  return {
    most: mostInWindow / scenario.limit,
    ideal: admitted / ideal,
    allowed: wronglyAllowed / decisions,
    refused: wronglyRefused / decisions,
    lockOut: worstLockOutMs / 1000,
  };
}

/** @type {import("../lib/report.mjs").Column[]} */
const columns = [
  { key: "most", title: "most in a true window, of the limit", unit: "share" },
  { key: "ideal", title: "admitted, of the ideal", unit: "share" },
  { key: "allowed", title: "wrongly allowed", unit: "share" },
  { key: "refused", title: "wrongly refused", unit: "share" },
  { key: "lockOut", title: "worst lock-out", unit: "s" },
];

/** @type {import("../lib/plot.mjs").Plot} */
const mostPlot = {
  kind: "bars",
  column: "most",
  caption: "The most admitted in any true minute, of the limit",
  scale: "linear",
  mark: { at: 1, text: "limit" },
  neutral: true,
};

/**
 * @param {Scenario} scenario
 * @param {Outcome[]} outcomes
 * @returns {Section}
 */
function scenarioSection({ id, title, note, arrivals, clockErrorsMs }, outcomes) {
  return {
    id: `accuracy-${id}`,
    title,
    note: `${note} ${arrivals.length.toLocaleString("en-US")} calls${id === "retry-storm" ? " and their retries" : ""}.`,
    columns,
    rows: outcomes.map((outcome) => ({
      id: outcome.candidate.id,
      label: outcome.candidate.label,
      cells: figures(outcome),
    })),
    ...(clockErrorsMs && { plot: mostPlot }),
  };
}

/**
 * The worst of each limiter over all scenarios with one clock.
 * @param {Outcome[]} outcomes
 * @returns {Section}
 */
function summary(outcomes) {
  const all = candidates.filter(({ nodes }) => nodes !== "several");
  return {
    id: "accuracy-summary",
    title: "The worst of each, over all scenarios of one node",
    note: "Each figure is the worst over the scenarios below, the one with several nodes apart. Wrong answers are shares of all calls in the scenario.",
    columns: [{ key: "algorithm", title: "how it counts", unit: "text" }, ...columns],
    rows: all.map((candidate) => {
      const its = outcomes
        .filter((outcome) => outcome.candidate === candidate && outcome.scenario.id !== "nodes")
        .map(figures);
      const worst = (/** @type {string} */ key) => Math.max(...its.map((row) => Number(row[key])));
      return {
        id: candidate.id,
        label: candidate.label,
        cells: {
          algorithm: candidate.algorithm,
          most: worst("most"),
          ideal: Math.min(...its.map((row) => Number(row.ideal))),
          allowed: worst("allowed"),
          refused: worst("refused"),
          lockOut: worst("lockOut"),
        },
      };
    }),
    plot: mostPlot,
  };
}

/**
 * @param {Outcome[]} outcomes
 * @returns {import("../lib/report.mjs").Target[]}
 */
function targets(outcomes) {
  const worst = (/** @type {string} */ id, /** @type {string} */ figure) =>
    Math.max(
      ...outcomes
        .filter(({ candidate }) => candidate.id === id)
        .map((outcome) => Number(figures(outcome)[figure])),
    );
  return [
    {
      id: "accuracy-log-most",
      claim: "slidingLog: the most admitted in any true window",
      wanted: "at most",
      bound: 1,
      value: worst("slidingLog", "most"),
      unit: "share",
    },
    {
      id: "accuracy-log-allowed",
      claim: "slidingLog: calls wrongly allowed",
      wanted: "at most",
      bound: 0,
      value: worst("slidingLog", "allowed"),
      unit: "share",
    },
    {
      id: "accuracy-log-refused",
      claim: "slidingLog: calls wrongly refused",
      wanted: "at most",
      bound: 0,
      value: worst("slidingLog", "refused"),
      unit: "share",
    },
    {
      id: "accuracy-nodes-most",
      claim: "slidingLog on Redis, nodes whose clocks differ: the most admitted in any true window",
      wanted: "at most",
      bound: 1,
      value: worst("redis slidingLog", "most"),
      unit: "share",
    },
    {
      id: "accuracy-nodes-refused",
      claim: "slidingLog on Redis, nodes whose clocks differ: calls wrongly refused",
      wanted: "at most",
      bound: 0,
      value: worst("redis slidingLog", "refused"),
      unit: "share",
    },
    {
      id: "accuracy-cells-most",
      claim: "slidingCells, strict: the most admitted in any true window",
      wanted: "at most",
      bound: 1,
      value: worst("slidingCells, strict", "most"),
      unit: "share",
    },
  ];
}
