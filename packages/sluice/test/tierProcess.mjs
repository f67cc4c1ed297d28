// @ts-check
// One of several processes that share a limit, in a process of its own: `node tierProcess.mjs <options as JSON>`.
// Calls one key at random times of its own, whatever the answers are and however long they take, and prints when each admitted call was let through and how many were made.
import { Redis } from "ioredis";
import { slidingLog, tiered } from "sluice";
import { redisStore } from "sluice/redis";

/**
 * @typedef {object} Options
 * @property {{ port: number } | { path: string }} redis where it is
 * @property {boolean} leases whether there is a tier in front of it
 * @property {number} limit
 * @property {number} window
 * @property {number} perSecond how many calls this process makes
 * @property {number} startAt when all begin, in milliseconds since the epoch
 * @property {number} durationMs
 */

/** @type {Options} */
const options = JSON.parse(process.argv[2] ?? "{}");
const { leases, limit, window, perSecond, startAt, durationMs } = options;
const client = new Redis(options.redis);
const redis = redisStore(client);

/** When the question was sent whose answer came last. */
let answeredFrom = 0;
/** @type {import("sluice").Store} */
const remote = {
  ...redis,
  sync: false,
  async decide(charges, commit) {
    const sentAt = performance.now();
    const decisions = await redis.decide(charges, commit);
    answeredFrom = sentAt;
    return decisions;
  },
  settle: (settlements) => redis.settle(settlements),
  close: () => {},
};
const store = leases ? tiered(remote, { leases: true }) : remote;
const rule = { ...slidingLog({ limit, window }), path: "shared/hot" };

/** Per admitted call, between which times it was let through: one and the same, but for pauses of the process. */
/** @type {[number, number][]} */
const admitted = [];
/** When each call was made. @type {number[]} */
const calls = [];
let failed = 0;

function call() {
  const calledAt = performance.now();
  const from = Date.now();
  calls.push(from);
  const answer = store.decide([{ rule, key: "hot", cost: 1, partition: "hot" }], true);
  if (!(answer instanceof Promise)) {
    if (answer[0]?.allowed) admitted.push([from, Date.now()]);
    return;
  }
  answer.then(
    ([decision]) => {
      if (!decision?.allowed) return;
      // Asked for in the question: admitted when Redis decided. Joined later: when the answer came.
      if (calledAt <= answeredFrom) admitted.push([decision.at, decision.at]);
      else admitted.push([from, Date.now()]);
    },
    () => failed++,
  );
}

await client.ping();
await new Promise((resolve) => setTimeout(resolve, startAt - Date.now()));
const gap = () => (-Math.log(1 - Math.random()) * 1000) / perSecond;
for (let dueAt = gap(); dueAt < durationMs; dueAt += gap()) {
  while (Date.now() - startAt < dueAt) await new Promise((resolve) => setTimeout(resolve, 1));
  call();
  // Each in a turn of its own, as requests come from sockets.
  await new Promise(setImmediate);
}
await new Promise((resolve) => setTimeout(resolve, 100));
await store.close();
client.disconnect();
console.log(JSON.stringify({ admitted, calls, failed }));
