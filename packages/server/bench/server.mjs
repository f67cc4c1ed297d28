// `node packages/server/bench/server.mjs [seconds]`: the server beside bare Fastify and bare grpc-js, in
// processes of their own, in turns, so that a noisy moment falls on both. Fails where a claim does not hold.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { grpcRate, httpRate } from "./load.mjs";

const seconds = Number(process.argv[2] ?? 3);
const ROUNDS = 5;
const BATCH = 100;

const sluice = await start("sluice");
const bare = await start("bare");
try {
  const single = (n) => `{"key":"user:${n % 1000}","cost":1}`;
  const batch = (n) =>
    JSON.stringify({
      decisions: Array.from({ length: BATCH }, (_, d) => ({
        limiter: "api",
        key: `user:${(n * BATCH + d) % 1000}`,
      })),
    });
  const acquire = "/v1/limiters/api/acquire";
  const bodies = Array.from({ length: 10 }, (_, n) => batch(n));

  const http = await inTurns(
    [sluice, () => httpRate(sluice.ports.http, acquire, single, seconds)],
    [bare, () => httpRate(bare.ports.http, "/acquire", single, seconds)],
  );
  const grpc = await inTurns(
    [sluice, () => grpcRate(sluice.ports.grpc, seconds)],
    [bare, () => grpcRate(bare.ports.grpc, seconds)],
  );
  const batched = await inTurns(
    [sluice, () => httpRate(sluice.ports.http, "/v1/batch", (n) => bodies[n % 10], seconds, 8), BATCH],
    [sluice, () => httpRate(sluice.ports.http, acquire, single, seconds)],
  );

  console.log(
    "\n| claim | measured | beside | ratio | at least | by CPU time of the server |\n|---|---|---|---|---|---|",
  );
  const rows = [
    row("POST …/acquire, requests/s", http, "bare Fastify", 0.75),
    row("ShouldRateLimit, calls/s", grpc, "bare grpc-js", 0.75),
    row(`/v1/batch of ${BATCH}, decisions/s`, batched, "one by one", 20),
  ];
  const fast = batched.ours >= 200_000;
  console.log(`| /v1/batch, decisions/s | ${round(batched.ours)} | | | 200000 | |${fast ? "" : " FAILED"}`);
  process.exitCode = rows.every(Boolean) && fast ? 0 : 1;
} finally {
  sluice.stop();
  bare.stop();
}

/**
 * Medians of alternating rounds after three that warm up, and the median of the rounds' ratios: by the clock,
 * and by what the servers worked per answer, which neighbours on the machine do not disturb as much.
 */
async function inTurns(ours, theirs) {
  for (let warm = 0; warm < 3; warm++) await pair(ours, theirs);
  const rounds = [];
  for (let r = 0; r < ROUNDS; r++) {
    const [a, b] = r % 2 === 0 ? await pair(ours, theirs) : (await pair(theirs, ours)).reverse();
    rounds.push({ ours: a.rate, theirs: b.rate, ratio: a.rate / b.rate, cpu: b.work / a.work });
  }
  return {
    ours: median(rounds.map((round) => round.ours)),
    theirs: median(rounds.map((round) => round.theirs)),
    ratio: median(rounds.map((round) => round.ratio)),
    cpu: median(rounds.map((round) => round.cpu)),
  };
}

async function measure([server, rateOf, weight = 1]) {
  const before = await server.cpu();
  const started = performance.now();
  const rate = weight * (await rateOf());
  const seconds = (performance.now() - started) / 1000;
  return { rate, work: ((await server.cpu()) - before) / (rate * seconds) };
}

async function pair(first, second) {
  return [await measure(first), await measure(second)];
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

function row(claim, { ours, theirs, ratio, cpu }, beside, least) {
  const holds = ratio >= least;
  console.log(
    `| ${claim} | ${round(ours)} | ${beside} ${round(theirs)} | ${ratio.toFixed(2)} | ${least} | ${cpu.toFixed(2)} |${holds ? "" : " FAILED"}`,
  );
  return holds;
}

function round(value) {
  return Math.round(value).toString();
}

async function start(what) {
  const child = fork(fileURLToPath(new URL("child.mjs", import.meta.url)), [what]);
  const ports = await new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code) => reject(new Error(`${what} ended with ${code}`)));
  });
  const cpu = () =>
    new Promise((resolve) => {
      child.once("message", (message) => resolve(message.cpu));
      child.send("cpu");
    });
  return { ports, cpu, stop: () => child.disconnect() };
}
