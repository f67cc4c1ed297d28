/**
 * Leaky bucket: lets units out one by one, `window / limit` apart, and holds up to `burst` of them.
 *
 * Guarantee: evenly spaced; with `burst` 1, the default, two units are never closer than
 * `window / limit`. With `acquire` it shapes traffic.
 * Cost: three numbers per key, O(1), exact in integers.
 *
 * A leaky bucket that meters is a token bucket seen from below: what has leaked out is room for
 * what comes. The arithmetic is therefore the same; what differs is the burst one starts from.
 */
export { tokenBucket as leakyBucket } from "./tokenBucket.js";
