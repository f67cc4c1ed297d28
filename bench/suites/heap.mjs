// @ts-check
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { holders } from "../contenders/heap.mjs";

const child = fileURLToPath(new URL("../lib/heap-child.mjs", import.meta.url));

const COUNTER_KEYS = 1_000_000;
const LOG_KEYS = 1_000;
/** Entries per key: each power of two is a full ring, one more the emptiest after growing. */
const LOG_SIZES = [10, 100, 1_000, 1_025, 1_500, 10_000];
/** For the one peer that keeps each request too, and looks at all of them each time. */
const PEER_SIZE = 1_000;

/**
 * Bytes that a process holds more, after collection, once a limiter has seen its keys: each limiter in a
 * process of its own. The keys themselves are there before.
 * @param {number} scale 1 for a full run, less for a quick one
 * @param {(share: number) => void} onProgress
 */
export async function measureHeap(scale, onProgress) {
  const counters = Object.keys(holders).filter((id) => id !== "log");
  const steps = counters.length + LOG_SIZES.length + 1;
  let done = 0;
  const keys = Math.ceil(COUNTER_KEYS * scale);
  const perKey = [];
  for (const id of counters) {
    const bytes = (await bytesHeld(id, keys, 1)) / keys;
    perKey.push({ id, label: /** @type {string} */ (holders[id]?.label), cells: { bytes } });
    onProgress(++done / steps);
  }
  const perRequest = [];
  const logKeys = Math.ceil(LOG_KEYS * scale);
  for (const size of LOG_SIZES) {
    const bytes = (await bytesHeld("log", logKeys, size)) / logKeys;
    const label = `Sluice slidingLog, ${size.toLocaleString("en-US")} requests per key`;
    perRequest.push({ id: `log-${size}`, label, cells: { perKey: bytes, perRequest: bytes / size } });
    onProgress(++done / steps);
  }
  const bytes = (await bytesHeld("nestjs-throttler", logKeys, PEER_SIZE)) / logKeys;
  const label = `@nestjs/throttler, ${PEER_SIZE.toLocaleString("en-US")} requests per key`;
  const peer = { id: "nestjs-throttler", label, cells: { perKey: bytes, perRequest: bytes / PEER_SIZE } };
  onProgress(1);
  return {
    sections: [keySection(keys, perKey), logSection(logKeys, [...perRequest, peer])],
    targets: targets(perKey, perRequest),
  };
}

/**
 * @param {string} id
 * @param {number} keys
 * @param {number} requests per key
 * @returns {Promise<number>}
 */
function bytesHeld(id, keys, requests) {
  return new Promise((resolve, reject) => {
    const worker = fork(child, [id, String(keys), String(requests)], {
      execArgv: ["--expose-gc", "--max-old-space-size=4096"],
    });
    worker.once("message", (bytes) => resolve(Number(bytes)));
    worker.once("exit", (code) => code !== 0 && reject(new Error(`measuring ${id} ended with ${code}`)));
  });
}

/**
 * @param {number} keys
 * @param {import("../lib/report.mjs").Row[]} rows
 * @returns {import("../lib/report.mjs").Section}
 */
function keySection(keys, rows) {
  return {
    id: "memory-per-key",
    title: `Bytes per key, ${keys.toLocaleString("en-US")} keys seen once`,
    note:
      "Heap and array buffers after collection. The caller's key strings are not counted; strings that a " +
      "limiter makes of them for itself, with a prefix, are. @fastify/rate-limit is given a cache of that size; " +
      "by default it forgets all but 5,000 keys.",
    columns: [{ key: "bytes", title: "per key", unit: "bytes" }],
    rows,
    plot: { kind: "bars", column: "bytes", caption: "Heap per key (shorter is better)", scale: "linear" },
  };
}

/**
 * @param {number} keys
 * @param {import("../lib/report.mjs").Row[]} rows
 * @returns {import("../lib/report.mjs").Section}
 */
function logSection(keys, rows) {
  return {
    id: "memory-per-request",
    title: `Bytes per admitted request, ${keys.toLocaleString("en-US")} keys`,
    note:
      "Everything a key costs, divided by the requests it holds; 1,025 is one more than a power of two, where " +
      "the ring has just doubled and its slack is largest.",
    columns: [
      { key: "perKey", title: "per key", unit: "bytes" },
      { key: "perRequest", title: "per request", unit: "bytes" },
    ],
    rows,
  };
}

/**
 * @param {import("../lib/report.mjs").Row[]} perKey
 * @param {import("../lib/report.mjs").Row[]} perRequest
 * @returns {import("../lib/report.mjs").Target[]}
 */
function targets(perKey, perRequest) {
  const counter = Number(perKey.find((row) => row.id === "sluice-fixed")?.cells.bytes);
  const large = perRequest.filter((row) => Number(row.id.slice(4)) >= 1_000);
  return [
    {
      id: "memory-key-bytes",
      claim: "Bytes per key of a counter at 1,000,000 keys",
      wanted: "at most",
      bound: 64,
      value: counter,
      unit: "bytes",
    },
    {
      id: "memory-request-bytes",
      claim: "Bytes per admitted request in the exact log, from 1,000 per key, worst slack included",
      wanted: "at most",
      bound: 16,
      value: Math.max(...large.map((row) => Number(row.cells.perRequest))),
      unit: "bytes",
    },
  ];
}
