// One small app on every adapter: a real server on a free port, guarded, whose handler the test supplies.
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import express5 from "express";
// @ts-expect-error Express 4 under an alias, for which there are no types
import express4 from "express4";
import { fastify } from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import * as express from "../src/http/express.js";
import * as forFastify from "../src/http/fastify.js";
import * as forFetch from "../src/http/fetch.js";
import type { GuardDecision } from "../src/http/guard.js";
import * as hono from "../src/http/hono.js";
import * as koa from "../src/http/koa.js";
import * as node from "../src/http/node.js";
import type { GuardOptions } from "../src/http/options.js";
import type { MaybePromise } from "../src/store.js";

/** What the test's handler answers to a request for a path; an Error is thrown. */
export type Handler = (
  path: string,
  decision: GuardDecision | undefined,
) => MaybePromise<{ readonly status?: number; readonly body: string } | Error>;

export type Guards = readonly GuardOptions<unknown>[];

export interface Running {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a server whose every path is guarded by the guards, in their order. */
type Start = (guards: Guards, handler: Handler) => Promise<Running>;

export const adapters: Readonly<Record<string, Start>> = {
  "express 5": (guards, handler) => expressServer(express5, guards, handler),
  "express 4": (guards, handler) => expressServer(express4, guards, handler),

  async fastify(guards, handler) {
    const app = fastify({ forceCloseConnections: true });
    for (const guard of guards) await app.register(forFastify.rateLimit, guard);
    app.all("*", async (request, reply) => {
      const { status = 200, body } = orThrow(await handler(request.url, request.rateLimit ?? undefined));
      return reply.code(status).type("text/plain").send(body);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = app.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, close: () => app.close() };
  },

  async "fastify, as preHandler of a route"(guards, handler) {
    const app = fastify({ forceCloseConnections: true });
    app.route({
      method: ["GET", "HEAD", "POST"],
      url: "*",
      exposeHeadRoute: false,
      preHandler: guards.map((guard) => forFastify.rateLimitHook(guard)),
      async handler(request, reply) {
        const { status = 200, body } = orThrow(await handler(request.url, request.rateLimit ?? undefined));
        return reply.code(status).type("text/plain").send(body);
      },
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const { port } = app.server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}`, close: () => app.close() };
  },

  hono(guards, handler) {
    const app = new Hono();
    for (const guard of guards) app.use(hono.rateLimit(guard));
    app.onError(() => new Response("broken", { status: 500 }));
    app.all("*", async (c) => {
      const { status = 200, body } = orThrow(await handler(c.req.path, c.var.rateLimit));
      return new Response(body, { status });
    });
    return listen(getRequestListener(app.fetch));
  },

  koa(guards, handler) {
    const app = new Koa();
    app.silent = true;
    for (const guard of guards) app.use(koa.rateLimit(guard));
    app.use(async (ctx) => {
      const { status = 200, body } = orThrow(await handler(ctx.path, ctx.state.rateLimit));
      ctx.status = status;
      ctx.body = body;
    });
    return listen(app.callback());
  },

  node(guards, handler) {
    let listener: RequestListener = async (request: node.GuardedRequest, response) => {
      const answer = await handler(request.url ?? "/", request.rateLimit);
      response.statusCode = answer instanceof Error ? 500 : (answer.status ?? 200);
      response.end(answer instanceof Error ? "broken" : answer.body);
    };
    for (const guard of guards.toReversed()) listener = node.rateLimit(guard, listener);
    return listen(listener);
  },

  fetch(guards, handler) {
    type Env = { incoming: { socket: { remoteAddress?: string } } };
    const peer = (_: Request, env: Env) => env.incoming.socket.remoteAddress;
    let fetch = async (request: Request, _env: Env): Promise<Response> => {
      const path = new URL(request.url).pathname;
      const { status = 200, body } = orThrow(await handler(path, forFetch.decisionOf(request)));
      return new Response(body, { status });
    };
    for (const guard of guards.toReversed()) fetch = forFetch.rateLimit({ ...guard, peer }, fetch);
    return listen(getRequestListener((request, env) => fetch(request, env as Env)));
  },
};

async function expressServer(framework: typeof express5, guards: Guards, handler: Handler): Promise<Running> {
  const app = framework();
  app.set("env", "test");
  app.use(...([guards.map((guard) => express.rateLimit(guard))] as [express5.RequestHandler[]]));
  app.use((request, response, next) => {
    Promise.resolve(handler(request.path, request.rateLimit))
      .then(orThrow)
      .then(({ status = 200, body }) => void response.status(status).send(body))
      .catch(next);
  });
  return listen(app);
}

export async function listen(listener: RequestListener): Promise<Running> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

function orThrow<T>(answer: T | Error): T {
  if (answer instanceof Error) throw answer;
  return answer;
}
