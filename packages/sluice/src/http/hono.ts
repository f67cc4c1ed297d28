import type { Context, MiddlewareHandler } from "hono";
import { createGuard, type GuardDecision, type Platform, type Verdict } from "./guard.js";
import type { Header } from "./headers.js";
import type { GuardOptions } from "./options.js";
import { endingOf, refusedResponse, withVerdictHeaders } from "./webResponse.js";

export type * from "./types.js";

declare module "hono" {
  interface ContextVariableMap {
    /** What the guards of this request decided; undefined when it was skipped. */
    rateLimit: GuardDecision | undefined;
  }
}

export type RateLimitOptions = GuardOptions<Context> & {
  /**
   * The address a request came from: known on Node, Bun and Deno unless told. On Workers:
   * `(c) => c.req.header("cf-connecting-ip")`.
   */
  readonly peer?: (context: Context) => string | undefined;
};

/** What the servers of Node, Bun and Deno leave in `c.env`. */
interface Connection {
  readonly incoming?: { readonly socket: { readonly remoteAddress?: string } };
  readonly remoteAddr?: { readonly hostname?: string };
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
}

function peerOf({ env, req }: Context): string | undefined {
  const connection: Connection | undefined = env?.server ?? env;
  if (connection?.incoming) return connection.incoming.socket.remoteAddress ?? "gone";
  return connection?.remoteAddr?.hostname ?? connection?.requestIP?.(req.raw)?.address;
}

/**
 * Guards a Hono app or route: only admitted requests go on, and all responses carry the headers.
 * What the guard cannot judge (a `key` that throws) goes to `app.onError`.
 */
export function rateLimit(options: RateLimitOptions): MiddlewareHandler {
  const { peer = peerOf, ...rest } = options ?? {};
  const platform: Platform<Context> = {
    peer,
    header: ({ req }, name) => req.header(name),
    route: ({ req }) => req.matchedRoutes.at(-1)?.path ?? "/",
  };
  const guard = createGuard(rest as GuardOptions<Context>, platform);
  return (context, next) => {
    const previous = context.get("rateLimit");
    // Nothing here awaits what is there already: each await costs a request more than its decision does.
    const verdict = guard.admit(context, previous);
    if (!(verdict instanceof Promise)) return carryOut(verdict, previous, context, next);
    return verdict.then((verdict) => carryOut(verdict, previous, context, next));
  };
}

type Next = Parameters<MiddlewareHandler>[1];

function carryOut(
  verdict: Verdict | undefined,
  previous: GuardDecision | undefined,
  context: Context,
  next: Next,
): ReturnType<MiddlewareHandler> {
  if (verdict === undefined) return next();
  context.set("rateLimit", verdict.decision);
  if (verdict.refusal) return Promise.resolve(refusedResponse(verdict));
  const { outgoing } = context.env ?? {};
  if (verdict.settle || verdict.expose || !outgoing?.writeHead) return answer(verdict, context, next);
  if (previous === undefined) tellWithHead(outgoing, context);
  return next();
}

/** Runs what is guarded, then tells of the decision on its response. */
async function answer(verdict: Verdict, context: Context, next: Next): Promise<void> {
  const { expose, settle } = verdict;
  const ending = settle && endingOf(context.req.raw, settle);
  try {
    await next();
  } catch (error) {
    ending?.failed();
    throw error;
  }
  const { res } = context;
  const told = withVerdictHeaders(res, headersOf(context), expose);
  const watched = ending ? ending.watch(told) : told;
  if (watched !== res) {
    context.res = undefined;
    context.res = watched;
  }
}

/** What the guards so far, this one and those further in, have to tell. */
function headersOf(context: Context): readonly Header[] {
  return context.get("rateLimit")?.headers ?? [];
}

interface Outgoing {
  writeHead(status: number, reasonOrHeaders?: unknown, headers?: unknown): unknown;
  setHeader(name: string, value: string): unknown;
}

/**
 * On Node, tells of the decision when the head is written: to touch a Response's headers makes the server
 * build objects that it otherwise never needs, at several times the price of the decision.
 */
function tellWithHead(outgoing: Outgoing, context: Context): void {
  const { writeHead } = outgoing;
  outgoing.writeHead = (status, given, more) => {
    const told = headersOf(context);
    if (typeof given !== "object" || given === null || Array.isArray(given)) {
      for (const [name, value] of told) outgoing.setHeader(name, value);
      return writeHead.call(outgoing, status, given, more);
    }
    // The record may be the handler's own, for many answers, and a list costs less than a copy of it.
    const record = given as Readonly<Record<string, unknown>>;
    const list: unknown[] = [];
    for (const name in record) if (!has(told, name)) list.push(name, record[name]);
    for (const [name, value] of told) list.push(name, value);
    return writeHead.call(outgoing, status, list);
  };
}

function has(headers: readonly Header[], name: string): boolean {
  for (const [known] of headers) {
    if (known.length === name.length && known.toLowerCase() === name.toLowerCase()) return true;
  }
  return false;
}
