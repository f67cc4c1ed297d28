// @ts-check
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

export const title = "Size";
export const about =
  "Bundled by esbuild, tree-shaken, minified, then gzip -9; what Node itself or a framework brings is not counted.";

const folder = fileURLToPath(new URL("..", import.meta.url));
const sluice = JSON.parse(
  readFileSync(new URL("../../packages/sluice/package.json", import.meta.url), "utf8"),
);

/** What a first program imports. */
const FIRST = 'export { createLimiter, memoryStore, slidingLog } from "sluice"';
/** What a first guard imports, where it is given a limiter. */
const GUARD =
  'export { rateLimit } from "sluice/express"; export { createLimiter, slidingLog } from "sluice"';
const ADAPTERS = ["express", "fastify", "hono", "koa", "node", "fetch"];
const peers = {
  "rate-limiter-flexible": 'export { RateLimiterMemory } from "rate-limiter-flexible"',
  "@upstash/ratelimit": 'export { Ratelimit } from "@upstash/ratelimit"',
  "express-rate-limit": 'export { rateLimit } from "express-rate-limit"',
  "@fastify/rate-limit": 'export { default } from "@fastify/rate-limit"',
  "hono-rate-limiter": 'export { rateLimiter } from "hono-rate-limiter"',
  bottleneck: 'export { default } from "bottleneck"',
  limiter: 'export { RateLimiter } from "limiter"',
  "p-throttle": 'export { default } from "p-throttle"',
};

/**
 * @param {import("./index.mjs").Effort} effort
 * @returns {Promise<import("../lib/report.mjs").Measured>}
 */
export async function run({ onProgress }) {
  const subpaths = Object.keys(sluice.exports)
    .filter((path) => path.startsWith("./") && path !== "./package.json" && path !== "./testing")
    .map((path) => `sluice${path.slice(1)}`);
  const imports = [
    { id: "first", label: "Sluice: createLimiter, slidingLog, memoryStore", code: FIRST },
    { id: "all", label: "Sluice: everything of `sluice`", code: 'export * from "sluice"' },
    { id: "guard", label: "Sluice: a guard of `sluice/express`, createLimiter, slidingLog", code: GUARD },
    ...subpaths.map((path) => ({
      id: path,
      label: `Sluice: everything of \`${path}\``,
      code: `export * from "${path}"`,
    })),
    ...Object.entries(peers).map(([label, code]) => ({ id: label, label, code })),
  ];
  /** @type {{ id: string, label: string, cells: { min: number, gzip: number } }[]} */
  const rows = [];
  for (const { id, label, code } of imports) {
    rows.push({ id, label, cells: await sizes(code) });
    onProgress(rows.length / imports.length);
  }
  const gzipped = (/** @type {string} */ id) => rows.find((row) => row.id === id)?.cells.gzip ?? Number.NaN;
  return {
    sections: [
      {
        id: "size",
        title: "What an import adds to a bundle",
        note: "kB are thousands of bytes.",
        columns: [
          { key: "min", title: "minified", unit: "kB" },
          { key: "gzip", title: "and gzipped", unit: "kB" },
        ],
        rows,
        plot: {
          kind: "bars",
          column: "gzip",
          caption: "Minified and gzipped (shorter is better)",
          scale: "linear",
        },
      },
    ],
    targets: [
      target(
        "size-first",
        "createLimiter + slidingLog + memoryStore, minified and gzipped",
        8,
        gzipped("first"),
      ),
      target(
        "size-guard",
        "A guard of sluice/express with its own exact rule in memory, minified and gzipped",
        9,
        gzipped("sluice/express"),
      ),
      target(
        "size-guards",
        "The largest guard of all adapters with its own exact rule in memory, minified and gzipped",
        9,
        Math.max(...ADAPTERS.map((name) => gzipped(`sluice/${name}`))),
      ),
    ],
  };
}

/**
 * @param {string} id
 * @param {string} claim
 * @param {number} bound
 * @param {number} value
 * @returns {import("../lib/report.mjs").Target}
 */
function target(id, claim, bound, value) {
  return { id, claim, wanted: "at most", bound, value, unit: "kB" };
}

/** @param {string} contents */
async function sizes(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    external: ["express", "fastify", "hono", "koa", "ioredis", "redis", "@upstash/redis", "fast-check"],
    logLevel: "silent",
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  return { min: code.length / 1000, gzip: gzipSync(code, { level: 9 }).length / 1000 };
}
