// @ts-check

/**
 * The part of @upstash/redis that @upstash/ratelimit uses, over ioredis. Its scripts begin with a shebang
 * whose flag only the vendor's Redis knows; without that line they run on any.
 * @param {import("ioredis").Redis} redis
 * @returns {import("@upstash/ratelimit").RatelimitConfig["redis"]}
 */
export function upstashClient(redis) {
  /** The vendor's digest of a script, and the one it has without its first line. @type {Map<string, string>} */
  const scripts = new Map();
  const client = {
    /** @type {(sha: string, keys: string[], args: unknown[]) => Promise<unknown>} */
    async evalsha(sha, keys, args) {
      const known = scripts.get(sha);
      if (known === undefined) throw new Error("NOSCRIPT No matching script");
      return redis.evalsha(known, keys.length, ...keys, ...args.map(String));
    },
    /** @type {(script: string, keys: string[], args: unknown[]) => Promise<unknown>} */
    async eval(script, keys, args) {
      const portable = script.replace(/^#!.*\n/, "");
      const { createHash } = await import("node:crypto");
      const vendor = createHash("sha1").update(script).digest("hex");
      scripts.set(vendor, /** @type {string} */ (await redis.script("LOAD", portable)));
      return client.evalsha(vendor, keys, args);
    },
  };
  return /** @type {any} */ (client);
}
