// @ts-check
// Every suite, in the order of the page. Adding one: a file that exports `title`, `about` and `run`, and a line here.
import * as algorithms from "./algorithms.mjs";
import * as growth from "./growth.mjs";
import * as http from "./http.mjs";
import * as llm from "./llm.mjs";
import * as memory from "./memory.mjs";
import * as redis from "./redis.mjs";
import * as server from "./server.mjs";
import * as size from "./size.mjs";
import * as tiers from "./tiers.mjs";

/**
 * How thoroughly to measure.
 * @typedef {object} Effort
 * @property {number} rounds
 * @property {number} roundMs
 * @property {number} scale 1 for a full run; less makes the largest cases smaller
 * @property {(share: number) => void} onProgress
 */

/**
 * @typedef {object} Suite
 * @property {string} title
 * @property {string} about
 * @property {(effort: Effort) => Promise<import("../lib/report.mjs").Measured>} run
 */

/** @type {Record<string, Suite>} */
export const suites = { memory, algorithms, growth, redis, tiers, llm, http, server, size };
