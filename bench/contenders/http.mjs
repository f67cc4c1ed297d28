// @ts-check
// Every HTTP guard, used as its documentation says, on a server with one trivial route. What no guard can be
// cheaper than: "bare" has none, "empty" passes each request on, "headers" sets two headers that never change.
// Each is imported where it is used, so that a process has in it only what it measures.
import { createServer } from "node:http";

/**
 * @typedef {import("node:http").Server} Server
 * @typedef {{ limit: number, windowMs: number }} Rule
 * @typedef {(rule: Rule) => Promise<Server>} Make a server that does not listen yet
 * @typedef {"bare" | "empty" | "headers" | "sluice" | "peer"} Guard
 * @typedef {{ title: string, peer: string, make: Record<Guard, Make> }} Framework
 */

const POLICY = '"1m";q=1000000000;w=60';
const STANDING = '"1m";r=999999999;t=60';

/** @param {string} title @param {() => Promise<{ default: typeof import("express") }>} load @returns {Framework} */
function express(title, load) {
  /** @param {(app: import("express").Express, rule: Rule) => unknown} guard @returns {Make} */
  const guardedBy = (guard) => async (rule) => {
    const { default: create } = await load();
    const app = create();
    await guard(app, rule);
    app.get("/", (_, response) => void response.send("ok"));
    return createServer(app);
  };
  return {
    title,
    peer: "express-rate-limit",
    make: {
      bare: guardedBy(() => {}),
      empty: guardedBy((app) => app.use((_request, _response, next) => next())),
      headers: guardedBy((app) =>
        app.use((_request, response, next) => {
          response.setHeader("RateLimit-Policy", POLICY);
          response.setHeader("RateLimit", STANDING);
          next();
        }),
      ),
      sluice: guardedBy(async (app, { limit, windowMs }) => {
        const { rateLimit } = await import("sluice/express");
        app.use(rateLimit({ limit, window: windowMs }));
      }),
      peer: guardedBy(async (app, { limit, windowMs }) => {
        const { rateLimit } = await import("express-rate-limit");
        app.use(rateLimit({ limit, windowMs, standardHeaders: "draft-8", legacyHeaders: false }));
      }),
    },
  };
}

/** @param {(app: import("fastify").FastifyInstance, rule: Rule) => unknown} guard @returns {Make} */
const fastifyGuardedBy = (guard) => async (rule) => {
  const { fastify } = await import("fastify");
  const app = fastify();
  await guard(app, rule);
  app.get("/", (_, reply) => void reply.send("ok"));
  await app.ready();
  return app.server;
};

/**
 * @typedef {{ Bindings: import("@hono/node-server").HttpBindings }} OnNode
 * @param {(app: import("hono").Hono<OnNode>, rule: Rule) => unknown} guard
 * @returns {Make}
 */
const honoGuardedBy = (guard) => async (rule) => {
  const { Hono } = await import("hono");
  const { getRequestListener } = await import("@hono/node-server");
  const app = /** @type {import("hono").Hono<OnNode>} */ (new Hono());
  await guard(app, rule);
  app.get("/", (c) => c.text("ok"));
  return createServer(getRequestListener(app.fetch));
};

/** @type {Record<string, Framework>} */
export const frameworks = {
  express: express("Express 5", () => import("express")),
  // @ts-expect-error Express 4 under an alias, for which there are no types
  express4: express("Express 4", () => import("express4")),
  fastify: {
    title: "Fastify 5",
    peer: "@fastify/rate-limit",
    make: {
      bare: fastifyGuardedBy(() => {}),
      empty: fastifyGuardedBy((app) => app.addHook("onRequest", (_request, _reply, done) => done())),
      headers: fastifyGuardedBy((app) =>
        app.addHook("onRequest", (_request, reply, done) => {
          reply.header("ratelimit-policy", POLICY);
          reply.header("ratelimit", STANDING);
          done();
        }),
      ),
      sluice: fastifyGuardedBy(async (app, { limit, windowMs }) => {
        const { rateLimit } = await import("sluice/fastify");
        await app.register(rateLimit, { limit, window: windowMs });
      }),
      peer: fastifyGuardedBy(async (app, { limit, windowMs }) => {
        const { default: rateLimit } = await import("@fastify/rate-limit");
        await app.register(rateLimit, { max: limit, timeWindow: windowMs });
      }),
    },
  },
  hono: {
    title: "Hono 4 on Node",
    peer: "hono-rate-limiter",
    make: {
      bare: honoGuardedBy(() => {}),
      empty: honoGuardedBy((app) => app.use((_, next) => next())),
      headers: honoGuardedBy((app) =>
        app.use((c, next) => {
          c.header("RateLimit-Policy", POLICY);
          c.header("RateLimit", STANDING);
          return next();
        }),
      ),
      sluice: honoGuardedBy(async (app, { limit, windowMs }) => {
        const { rateLimit } = await import("sluice/hono");
        app.use(rateLimit({ limit, window: windowMs }));
      }),
      peer: honoGuardedBy(async (app, { limit, windowMs }) => {
        const { rateLimiter } = await import("hono-rate-limiter");
        /** @type {(c: import("hono").Context<OnNode>) => string} */
        const keyGenerator = (c) => c.env.incoming.socket.remoteAddress ?? "";
        app.use(rateLimiter({ limit, windowMs, keyGenerator }));
      }),
    },
  },
};
