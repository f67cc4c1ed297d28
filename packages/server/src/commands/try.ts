import type { Rule } from "sluice";
import type { RateLimitResponse } from "../envoy/messages.js";
import { shouldRateLimit } from "../envoy/service.js";
import { limiterNamed } from "../http/context.js";
import type { Answer } from "../limits/answer.js";
import { entriesFromArgument, keyFromArgument, openWorkbench } from "./connect.js";
import { explain } from "./explain.js";
import { RemoteServer } from "./remoteServer.js";

export interface TryOptions {
  readonly config?: string[];
  readonly redis?: string;
  readonly server?: string;
  readonly cost: number;
  readonly times: number;
  readonly peek?: boolean;
}

/** Decides and explains; the exit code is 2 where it is denied. */
export async function tryOnce(name: string, keys: readonly string[], options: TryOptions): Promise<void> {
  if (options.server !== undefined) await tryServer(new RemoteServer(options.server), name, keys, options);
  else await tryFiles(name, keys, options);
}

async function tryFiles(name: string, keys: readonly string[], options: TryOptions): Promise<void> {
  const { catalog, stores } = await openWorkbench(options.config, options.redis);
  try {
    if (catalog.domains.has(name)) {
      const request = envoyRequest(name, keys, options.cost);
      const response = await repeat(options.times, async () => shouldRateLimit(catalog, request, Infinity));
      return tellEnvoy(name, keys, response);
    }
    const limiter = limiterNamed(catalog, name);
    const key = keyFromArgument(limiter, onlyKey(keys));
    const answer = await repeat(options.times, async () =>
      options.peek ? limiter.peek(key, options.cost) : limiter.tryAcquire(key, options.cost),
    );
    tell(name, keys, options, answer, [...limiter.config.rules, ...limiter.config.shadowRules]);
  } finally {
    await stores.close();
  }
}

async function tryServer(
  server: RemoteServer,
  name: string,
  keys: readonly string[],
  options: TryOptions,
): Promise<void> {
  const { limiters, domains } = await server.limiters();
  if (domains.includes(name)) {
    const response = await repeat(options.times, () =>
      server.shouldRateLimit(envoyRequest(name, keys, options.cost)),
    );
    return tellEnvoy(name, keys, response);
  }
  const limiter = limiters.find((each) => each.name === name);
  const rules = limiter?.rules ?? [];
  const key = keyFromArgument(
    { hasParts: typeof limiter?.key === "object" || rules.some(({ by }) => by) },
    onlyKey(keys),
  );
  const verb = options.peek ? "peek" : "acquire";
  const answer = await repeat(options.times, () => server.decide(name, verb, key, options.cost));
  tell(name, keys, options, answer, rules);
}

function tell(
  name: string,
  keys: readonly string[],
  { cost }: TryOptions,
  answer: Answer,
  rules: readonly Rule[],
): void {
  console.log(`limiter ${name}, key ${keys.join(" ")}, cost ${cost}\n${explain(answer, cost, rules)}`);
  process.exitCode = answer.allowed ? 0 : 2;
}

function envoyRequest(domain: string, descriptors: readonly string[], cost: number) {
  return {
    domain,
    descriptors: descriptors.map((text) => ({ entries: entriesFromArgument(text) })),
    hitsAddend: cost,
  };
}

function tellEnvoy(
  domain: string,
  descriptors: readonly string[],
  { overallCode, statuses }: RateLimitResponse,
): void {
  console.log(`domain ${domain}: ${overallCode}`);
  statuses.forEach(({ code, currentLimit, limitRemaining }, s) => {
    const limit = currentLimit
      ? `${currentLimit.requestsPerUnit} per ${currentLimit.unit.toLowerCase()}, ${limitRemaining ?? 0} left`
      : limitRemaining
        ? "unlimited"
        : "no limit matches";
    console.log(`  ${code.padEnd(10)} ${descriptors[s]}: ${limit}`);
  });
  process.exitCode = overallCode === "OK" ? 0 : 2;
}

async function repeat<T>(times: number, decide: () => Promise<T>): Promise<T> {
  let last = await decide();
  for (let n = 1; n < times; n++) last = await decide();
  return last;
}

function onlyKey(keys: readonly string[]): string {
  if (keys.length === 1) return keys[0] as string;
  throw new Error("A limiter takes one key; join the parts of one by commas, such as user=42,ip=10.0.0.1.");
}
