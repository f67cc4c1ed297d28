// @ts-check
// Every HTTP guard, used as its documentation says, on a server with one trivial route. "bare" has no guard;
// "empty" passes each request on and does nothing else, which is what no guard can be cheaper than.
import { createServer } from "node:http";
import fastifyRateLimit from "@fastify/rate-limit";
import { getRequestListener } from "@hono/node-server";
import express5 from "express";
import { rateLimit as expressRateLimit } from "express-rate-limit";
// @ts-expect-error the types are those of Express 5
import express4 from "express4";
import { fastify } from "fastify";
import { Hono } from "hono";
import { rateLimiter as honoRateLimiter } from "hono-rate-limiter";
import { rateLimit as sluiceExpress } from "sluice/express";
import { rateLimit as sluiceFastify } from "sluice/fastify";
import { rateLimit as sluiceHono } from "sluice/hono";

/**
 * @typedef {import("node:http").Server} Server
 * @typedef {{ limit: number, windowMs: number }} Rule
 * @typedef {(rule: Rule) => Server | Promise<Server>} Make a server that does not listen yet
 * @typedef {{ title: string, peer: string, make: Record<"bare" | "empty" | "sluice" | "peer", Make> }} Framework
 */

/** @param {string} title @param {() => import("express").Express} create @returns {Framework} */
function express(title, create) {
  /** @param {(rule: Rule) => import("express").RequestHandler[]} guards @returns {Make} */
  const guardedBy = (guards) => (rule) => {
    const app = create();
    for (const guard of guards(rule)) app.use(guard);
    app.get("/", (_, response) => void response.send("ok"));
    return createServer(app);
  };
  return {
    title,
    peer: "express-rate-limit",
    make: {
      bare: guardedBy(() => []),
      empty: guardedBy(() => [(_request, _response, next) => next()]),
      sluice: guardedBy(({ limit, windowMs }) => [sluiceExpress({ limit, window: windowMs })]),
      peer: guardedBy(({ limit, windowMs }) => [
        expressRateLimit({ limit, windowMs, standardHeaders: "draft-8", legacyHeaders: false }),
      ]),
    },
  };
}

/** @param {(app: import("fastify").FastifyInstance, rule: Rule) => unknown} guard @returns {Make} */
const fastifyGuardedBy = (guard) => async (rule) => {
  const app = fastify();
  await guard(app, rule);
  app.get("/", (_, reply) => void reply.send("ok"));
  await app.ready();
  return app.server;
};

/** @param {(rule: Rule) => import("hono").MiddlewareHandler[]} guards @returns {Make} */
const honoGuardedBy = (guards) => (rule) => {
  const app = new Hono();
  for (const guard of guards(rule)) app.use(guard);
  app.get("/", (c) => c.text("ok"));
  return createServer(getRequestListener(app.fetch));
};

/** @type {Record<string, Framework>} */
export const frameworks = {
  express: express("Express 5", express5),
  express4: express("Express 4", express4),
  fastify: {
    title: "Fastify 5",
    peer: "@fastify/rate-limit",
    make: {
      bare: fastifyGuardedBy(() => {}),
      empty: fastifyGuardedBy((app) => app.addHook("onRequest", (_request, _reply, done) => done())),
      sluice: fastifyGuardedBy((app, { limit, windowMs }) =>
        app.register(sluiceFastify, { limit, window: windowMs }),
      ),
      peer: fastifyGuardedBy((app, { limit, windowMs }) =>
        app.register(fastifyRateLimit, { max: limit, timeWindow: windowMs }),
      ),
    },
  },
  hono: {
    title: "Hono 4 on Node",
    peer: "hono-rate-limiter",
    make: {
      bare: honoGuardedBy(() => []),
      empty: honoGuardedBy(() => [(_, next) => next()]),
      sluice: honoGuardedBy(({ limit, windowMs }) => [sluiceHono({ limit, window: windowMs })]),
      peer: honoGuardedBy(({ limit, windowMs }) => [
        honoRateLimiter({ limit, windowMs, keyGenerator: (c) => c.env.incoming.socket.remoteAddress }),
      ]),
    },
  },
};
