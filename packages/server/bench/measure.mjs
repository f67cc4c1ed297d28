// The server beside bare Fastify and bare grpc-js, each in a process of its own, in turns, so that a noisy
// moment falls on both.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { grpcRate, httpRate } from "./load.mjs";

/** Decisions per /v1/batch request. */
export const BATCH = 100;

/**
 * @param {{ rounds: number, seconds: number, warmups?: number, onProgress?: (share: number) => void }} effort
 */
export async function measureServer({ rounds, seconds, warmups = 3, onProgress = () => {} }) {
  const sluice = await start("sluice");
  const bare = await start("bare");
  const single = (n) => `{"key":"user:${n % 1000}","cost":1}`;
  const bodies = Array.from({ length: 10 }, (_, n) => batchBody(n));
  const acquire = [sluice, () => httpRate(sluice.ports.http, "/v1/limiters/api/acquire", single, seconds)];
  const batch = () => httpRate(sluice.ports.http, "/v1/batch", (n) => bodies[n % 10], seconds, 8);
  const turns = { rounds, warmups };
  try {
    const http = await inTurns(turns, acquire, [
      bare,
      () => httpRate(bare.ports.http, "/acquire", single, seconds),
    ]);
    onProgress(1 / 3);
    const grpc = await inTurns(
      turns,
      [sluice, () => grpcRate(sluice.ports.grpc, seconds)],
      [bare, () => grpcRate(bare.ports.grpc, seconds)],
    );
    onProgress(2 / 3);
    const batched = await inTurns(turns, [sluice, batch, BATCH], acquire);
    onProgress(1);
    return { http, grpc, batched };
  } finally {
    sluice.stop();
    bare.stop();
  }
}

function batchBody(n) {
  const decision = (_, d) => ({ limiter: "api", key: `user:${(n * BATCH + d) % 1000}` });
  return JSON.stringify({ decisions: Array.from({ length: BATCH }, decision) });
}

/**
 * Medians of alternating rounds after some that warm up, and the median of the rounds' ratios: by the clock,
 * and by what the servers worked per answer, which neighbours on the machine do not disturb as much.
 */
async function inTurns({ rounds, warmups }, ours, theirs) {
  for (let warm = 0; warm < warmups; warm++) await pair(ours, theirs);
  const measured = [];
  for (let r = 0; r < rounds; r++) {
    const [a, b] = r % 2 === 0 ? await pair(ours, theirs) : (await pair(theirs, ours)).reverse();
    measured.push({ ours: a.rate, theirs: b.rate, ratio: a.rate / b.rate, cpu: b.work / a.work });
  }
  return {
    ours: median(measured.map((round) => round.ours)),
    theirs: median(measured.map((round) => round.theirs)),
    ratio: median(measured.map((round) => round.ratio)),
    cpu: median(measured.map((round) => round.cpu)),
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
