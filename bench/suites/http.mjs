// @ts-check
import { frameworks } from "../contenders/http.mjs";
import { startLoaded } from "../lib/http-load.mjs";
import { ratio, spread } from "../lib/stats.mjs";

export const title = "HTTP guards";
export const about =
  "A route that answers “ok”: bare, behind Sluice's guard, and behind the framework's usual one, each as its " +
  "documentation says and counting in memory; between them a middleware that does nothing, and one that sets two " +
  "headers that never change, which no guard can be much cheaper than. Every server is a process of its own; one more " +
  "keeps 50 connections busy with one request each at a time, and the servers take turns of about 40 ms, five in " +
  "a round. CPU is what the server's process worked per request. The one client is never over its limit: every " +
  "answer is 200, and carries the guard's headers.";

const LIMIT = 1_000_000_000;
const CONNECTIONS = 50;
const TURNS = 5;
const WARM_UP = 10_000;
/** What the project asks of itself: requests per second beside the bare framework. */
const WANTED = /** @type {Record<string, number>} */ ({
  express: 0.95,
  express4: 0.95,
  fastify: 0.95,
  hono: 0.9,
});
const GUARDS = /** @type {const} */ (["bare", "empty", "headers", "sluice", "peer"]);

/** @typedef {{ perSecond: number[], cpuUs: number[] }} Rounds by round */

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ onProgress, ...effort }) {
  const sections = [];
  const targets = [];
  const names = Object.keys(frameworks);
  for (const [n, name] of names.entries()) {
    const measured = await measure(name, effort, (share) => onProgress((n + share) / names.length));
    sections.push(sectionOf(name, measured));
    targets.push(...targetsOf(name, measured));
  }
  return { sections, targets };
}

/**
 * @param {string} framework
 * @param {{ rounds: number, roundMs: number, scale: number }} effort
 * @param {(share: number) => void} onProgress
 */
async function measure(framework, { rounds, roundMs, scale }, onProgress) {
  const entries = await Promise.all(
    GUARDS.map(async (guard) => ({
      guard,
      server: await startLoaded({ framework, guard, limit: LIMIT, connections: CONNECTIONS }),
      measured: /** @type {Rounds} */ ({ perSecond: [], cpuUs: [] }),
    })),
  );
  const warmUp = Math.max(CONNECTIONS, WARM_UP * scale);
  for (const { server } of entries) await server.turn(warmUp);
  const { seconds } = await entries[0].server.turn(warmUp);
  const requests = Math.max(CONNECTIONS, Math.round((warmUp * roundMs) / 1000 / seconds));
  for (let round = 0; round < rounds; round++) {
    const sums = entries.map(() => ({ seconds: 0, cpuUs: 0 }));
    for (let turn = 0; turn < TURNS; turn++) {
      for (let n = 0; n < entries.length; n++) {
        const e = (n + turn + round) % entries.length;
        const { seconds, cpuUs, refused } = await entries[e].server.turn(requests);
        if (refused > 0) throw new Error(`${framework}, ${entries[e].guard}: ${refused} were refused`);
        sums[e].seconds += seconds;
        sums[e].cpuUs += cpuUs;
      }
    }
    for (const [e, { measured }] of entries.entries()) {
      measured.perSecond.push((requests * TURNS) / sums[e].seconds);
      measured.cpuUs.push(sums[e].cpuUs / (requests * TURNS));
    }
    onProgress((round + 1) / rounds);
  }
  for (const { server } of entries) server.close();
  return /** @type {Record<import("../contenders/http.mjs").Guard, Rounds>} */ (
    Object.fromEntries(entries.map(({ guard, measured }) => [guard, measured]))
  );
}

/**
 * @param {string} name
 * @param {Record<import("../contenders/http.mjs").Guard, Rounds>} measured
 * @returns {import("../lib/report.mjs").Section}
 */
function sectionOf(name, measured) {
  const { title, peer } = frameworks[name];
  const labels = {
    bare: "floor: bare",
    empty: "floor: a middleware that does nothing",
    headers: "floor: two headers that never change",
    sluice: "Sluice",
    peer,
  };
  return {
    id: `http-${name}`,
    title,
    note: "The ratios are of the bare server, round by round: by requests per second, and by CPU, the steadier one.",
    columns: [
      { key: "perSecond", title: "requests/s", unit: "perSecond" },
      { key: "cpu", title: "CPU", unit: "us" },
      { key: "rate", title: "of bare", unit: "ratio" },
      { key: "work", title: "of bare, by CPU", unit: "ratio" },
    ],
    rows: GUARDS.map((guard) => ({
      id: guard,
      label: labels[guard],
      cells: {
        perSecond: spread(measured[guard].perSecond),
        cpu: spread(measured[guard].cpuUs),
        rate: ratio(measured[guard].perSecond, measured.bare.perSecond),
        work: ratio(measured.bare.cpuUs, measured[guard].cpuUs),
      },
    })),
    plot: {
      kind: "bars",
      column: "cpu",
      caption: "CPU per request, us (shorter is better)",
      scale: "linear",
    },
  };
}

/**
 * @param {string} name
 * @param {Record<import("../contenders/http.mjs").Guard, Rounds>} measured
 * @returns {import("../lib/report.mjs").Target[]}
 */
function targetsOf(name, { bare, sluice, peer }) {
  const { title, peer: peerName } = frameworks[name];
  return [
    {
      id: `http-${name}-bare`,
      claim: `Guard beside bare ${title}, by CPU`,
      wanted: "at least",
      bound: WANTED[name],
      value: ratio(bare.cpuUs, sluice.cpuUs).median,
      unit: "ratio",
    },
    {
      id: `http-${name}-peer`,
      claim: `Guard on ${title}: times ${peerName}, by CPU`,
      wanted: "at least",
      bound: 1,
      value: ratio(peer.cpuUs, sluice.cpuUs).median,
      unit: "ratio",
    },
  ];
}
