// @ts-check
// Load on a server in a process of its own, over connections that stay open from turn to turn, so that a turn
// may be short and nothing but requests is paid for in it. Spends less per request than any of the servers.
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";

const child = fileURLToPath(new URL("./http-child.mjs", import.meta.url));
const REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/** Where a status stands in "HTTP/1.1 200 OK". */
const STATUS_AT = 9;

/**
 * What a server did in a turn.
 * @typedef {object} Turn
 * @property {number} seconds
 * @property {number} cpuUs what its process worked
 * @property {number} admitted
 * @property {number} refused
 */

/**
 * @param {{ framework: string, guard: string, limit: number, connections: number }} setting
 * @returns {Promise<{ turn: (requests: number) => Promise<Turn>, close: () => void }>}
 */
export async function startLoaded({ framework, guard, limit, connections }) {
  const server = fork(child, [framework, guard, String(limit)], { execArgv: [] });
  const exited = once(server, "exit").then(() => {
    throw new Error(`the server of ${framework}, ${guard}, ended`);
  });
  exited.catch(() => {});
  const told = async () => Number((await Promise.race([once(server, "message"), exited]))[0]);
  const cpu = () => {
    server.send("cpu");
    return told();
  };
  const port = await told();
  const clients = await Promise.all(Array.from({ length: connections }, () => clientOf(port)));

  return {
    async turn(requests) {
      const before = await cpu();
      const started = process.hrtime.bigint();
      let left = requests;
      const take = () => left-- > 0;
      const asked = Promise.all(clients.map((client) => client(take)));
      const statuses = (await awake(Promise.race([asked, exited]))).flat();
      const seconds = Number(process.hrtime.bigint() - started) / 1e9;
      const admitted = statuses.filter((status) => status === "200").length;
      const refused = statuses.filter((status) => status === "429").length;
      if (admitted + refused < requests) throw new Error(`${framework}, ${guard}: ${statuses}`);
      return { seconds, cpuUs: (await cpu()) - before, admitted, refused };
    },
    close: () => server.disconnect(),
  };
}

/**
 * Waits without sleeping: to wake a process that sleeps costs the one that writes to it more than a decision.
 * @template T
 * @param {Promise<T>} work
 */
async function awake(work) {
  let isDone = false;
  const stay = () => {
    if (!isDone) setImmediate(stay);
  };
  stay();
  try {
    return await work;
  } finally {
    isDone = true;
  }
}

/**
 * A connection that sends one request after the other, as long as there is one to take; tells the statuses.
 * @param {number} port
 * @returns {Promise<(take: () => boolean) => Promise<string[]>>}
 */
async function clientOf(port) {
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await once(socket, "connect");
  return (take) =>
    new Promise((resolve, reject) => {
      /** @type {string[]} */
      const statuses = [];
      const next = () => {
        if (take()) socket.write(REQUEST);
        else {
          socket.removeAllListeners();
          resolve(statuses);
        }
      };
      let answer = "";
      socket.on("data", (data) => {
        answer += data.toString("latin1");
        if (!isWhole(answer)) return;
        statuses.push(answer.slice(STATUS_AT, STATUS_AT + 3));
        answer = "";
        next();
      });
      socket.once("error", reject);
      socket.once("close", () => reject(new Error("the server closed a connection")));
      next();
    });
}

/** @param {string} answer */
function isWhole(answer) {
  const end = answer.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const [, length] = /content-length: (\d+)/i.exec(answer) ?? [];
  if (length === undefined) throw new Error(`an answer without its length: ${answer}`);
  return answer.length >= end + 4 + Number(length);
}
