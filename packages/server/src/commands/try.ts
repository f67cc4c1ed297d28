import { Command } from "commander";
import type { Rule } from "sluice";
import type { RateLimitResponse } from "../envoy/messages.js";
import { shouldRateLimit } from "../envoy/service.js";
import { limiterNamed } from "../http/context.js";
import type { Answer } from "../limits/answer.js";
import { entriesFromArgument, keyFromArgument, openWorkbench } from "./connect.js";
import { explain } from "./explain.js";
import { another, wholeNumber } from "./options.js";
import { RemoteServer } from "./remoteServer.js";

interface TryOptions {
  readonly config?: string[];
  readonly redis?: string;
  readonly server?: string;
  readonly cost: number;
  readonly times: number;
  readonly peek?: boolean;
}

const EXAMPLES_OF_USE = `
Examples:
  sluice try api alice                                       the first decision for alice under limiter "api"
  sluice try -c limits.yaml login account=42,ip=10.0.0.1     keys with parts: part=value, joined by commas
  sluice try -c limits.yaml api alice --times 101            decide again and again: where does it end?
  sluice try --server http://127.0.0.1:8080 api alice --peek ask a running server, charging nothing
  sluice try -c envoy.yaml demo path=/login remote_address=10.0.0.1
                                                             a domain of Envoy's: one argument per descriptor

Against files, counts are in memory and start empty, unless --redis says where they are.
A server that asks for a token gets SLUICE_TOKEN.`;

export function tryCommand(): Command {
  return new Command("try")
    .description("make one decision against a config or a running server, and explain it")
    .argument("<limiter>", "the name of a limiter, or of a domain of Envoy's")
    .argument("<key...>", "who asks; for a domain, its descriptors")
    .option("-c, --config <path>", "limits files, or folders of them; may be told again", another)
    .option("-r, --redis <url>", "decide on the counts of this Redis")
    .option("-s, --server <url>", "ask this server instead")
    .option("--cost <n>", "how many units to take", wholeNumber, 1)
    .option("--times <n>", "how often to decide; the last is explained", wholeNumber, 1)
    .option("--peek", "charge nothing")
    .addHelpText("after", EXAMPLES_OF_USE)
    .action(async (name: string, keys: string[], options: TryOptions) => {
      if (options.server !== undefined)
        await tryServer(new RemoteServer(options.server), name, keys, options);
      else await tryFiles(name, keys, options);
    });
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
