import type {
  FastifyPluginAsync,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  RegisterOptions,
} from "fastify";
import type { Duration } from "../duration.js";
import { show } from "../errors.js";
import type { Limiter } from "../limiter.js";
import type { MaybePromise } from "../store.js";
import { counterFrom } from "./counter.js";
import { createGuard, type Guard, type GuardDecision, judge, type Platform, type Verdict } from "./guard.js";
import { nodePlatform, settleAtEnd } from "./nodeResponse.js";
import { type CommonOptions, checkGuardNames, type GuardOptions, refuseOption } from "./options.js";

export type * from "./types.js";

declare module "fastify" {
  interface FastifyRequest {
    /** What the guards of this request decided; null when it was skipped or has none. */
    rateLimit: GuardDecision | null;
  }
  interface FastifyContextConfig {
    /** Guards this route otherwise than the rest, or (`false`) not at all; what is left out is as for the rest. */
    rateLimit?: RouteOptions | false;
  }
}

export type RateLimitOptions = GuardOptions<FastifyRequest>;

/** What one route does otherwise. With the same limiter, the route shares the counts of the rest. */
export interface RouteOptions extends CommonOptions<FastifyRequest> {
  /** What to count with: this limiter, or one chosen per request ... */
  readonly limiter?: Limiter | ((request: FastifyRequest) => MaybePromise<Limiter>);
  /** ... or a rule kept in this process's memory. */
  readonly limit?: number;
  readonly window?: Duration;
}

/** Without a limiter and a limit, only the routes are guarded that bring one. */
export interface PluginOptions extends RouteOptions {
  /** When requests are judged: before (`"onRequest"`, the default) or after the body is read (`"preHandler"`). */
  readonly hook?: "onRequest" | "preHandler";
}

const platform: Platform<FastifyRequest> = {
  peer: ({ raw }) => nodePlatform.peer(raw),
  header: ({ raw }, name) => nodePlatform.header(raw, name),
  route: ({ routeOptions }) => routeOptions.url ?? "/",
};

/**
 * Guards every route of a Fastify instance and of those inside it, 404 included: only admitted requests go
 * on, and all answers carry the headers. Routes differ by `config: { rateLimit: { ... } }`.
 */
export const rateLimit: FastifyPluginAsync<PluginOptions> = async (instance, options) => {
  // The others are for Fastify, which passes on all that `register` is told.
  const {
    hook = "onRequest",
    prefix,
    logLevel,
    logSerializers,
    ...rest
  } = options as PluginOptions & RegisterOptions;
  if (hook !== "onRequest" && hook !== "preHandler") {
    refuseOption(`hook must be "onRequest" or "preHandler"; got ${show(hook)}`);
  }
  checkGuardNames(rest);
  const common = over({}, rest);
  const general = brings(common) ? createGuard(common, platform) : undefined;
  const guards = new WeakMap<object, Guard<FastifyRequest>>();
  const guardOf = (own: RouteOptions | false | undefined): Guard<FastifyRequest> | undefined => {
    if (own === undefined) return general;
    if (own === false) return undefined;
    const known = guards.get(own);
    if (known) return known;
    const guard = createGuard(over(common, own), platform);
    guards.set(own, guard);
    return guard;
  };
  if (!instance.hasRequestDecorator("rateLimit")) instance.decorateRequest("rateLimit", null);
  // Bad options of a route show when it is declared. A route declared before this plugin was loaded is
  // guarded as well, which is why the guard is a hook of the instance and not of each route.
  instance.addHook("onRoute", ({ config }) => void guardOf(config?.rateLimit));
  instance.addHook(hook as "onRequest", (request, reply, done) => {
    const guard = guardOf(request.routeOptions.config.rateLimit);
    if (guard) judgeRequest(guard, request, reply, done);
    else done();
  });
};
// What fastify-plugin would do: the hooks are of the instance that registers this, and not of a child of it.
Object.assign(rateLimit, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("plugin-meta")]: { name: "sluice", fastify: "5.x" },
});

/** A guard as a hook of a route, `onRequest` or `preHandler`, besides or in place of the plugin. */
export function rateLimitHook(options: RateLimitOptions): onRequestHookHandler {
  const guard = createGuard(options, platform);
  return (request, reply, done) => judgeRequest(guard, request, reply, done);
}

function judgeRequest(
  guard: Guard<FastifyRequest>,
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void,
): void {
  judge(
    guard,
    request,
    request.rateLimit ?? undefined,
    (verdict) => obey(verdict, request, reply),
    done,
    done as (error: unknown) => void,
  );
}

/** Whether the request passes; if not, its answer is sent. */
function obey(verdict: Verdict | undefined, request: FastifyRequest, reply: FastifyReply): boolean {
  if (verdict === undefined) return true;
  const { decision, expose, refusal, settle } = verdict;
  request.rateLimit = decision;
  if (settle) settleAtEnd(request.raw, reply.raw, settle);
  if (reply.sent) return refusal === undefined;
  for (const [name, value] of decision.headers) reply.header(lowerCased(name), value);
  if (expose !== undefined) {
    const before = reply.getHeader("Access-Control-Expose-Headers");
    reply.header("Access-Control-Expose-Headers", before === undefined ? expose : `${before}, ${expose}`);
  }
  if (refusal) reply.code(refusal.status).headers(refusal.headers).send(refusal.body);
  return refusal === undefined;
}

const lowerCase = new Map<string, string>();

/** What Fastify makes of a name, the same string each time: a new one costs it more than a decision does. */
function lowerCased(name: string): string {
  const known = lowerCase.get(name);
  if (known !== undefined) return known;
  const made = name.toLowerCase();
  lowerCase.set(name, made);
  return made;
}

function brings(options: object): boolean {
  return "limiter" in options || "limit" in options || "window" in options;
}

/** The route's options over the general ones; what it counts with comes from one of the two as a whole. */
function over(general: RouteOptions, own: RouteOptions): RateLimitOptions {
  const { limit, window, ...rest } = { ...general, ...own } as RateLimitOptions;
  return (
    brings(own) ? { ...rest, limiter: counterFrom(own as RateLimitOptions) } : rest
  ) as RateLimitOptions;
}
