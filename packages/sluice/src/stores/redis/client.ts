import { SluiceError, show } from "../../errors.js";
import { script, sha } from "./script.js";

/** Anything that runs scripts the way ioredis does: `evalsha(sha, numberOfKeys, ...keys, ...args)`. */
export interface ScriptRunner {
  evalsha(sha: string, keyCount: number, ...keysAndArgs: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...keysAndArgs: string[]): Promise<unknown>;
}

/** node-redis' way, a client's or a cluster's. */
export interface NodeRedisRunner {
  evalSha(sha: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** A client or cluster of ioredis or node-redis, or anything that runs scripts the way they do. */
export type RedisClient = ScriptRunner | NodeRedisRunner;

/** What the store needs of a client: to run the script, and to know whether keys are spread over nodes. */
export interface Connection {
  /** `repeatable`: whether the script may run again after it failed halfway. */
  run(keys: string[], args: string[], repeatable: boolean): Promise<unknown>;
  readonly cluster: boolean;
}

/** While a slot moves, its keys may be on two nodes for a moment: as often and as long a call is repeated. */
const MOVING_RETRIES = 20;
const MOVING_RETRY_MS = 25;
/** Not run, since the slot moves; clients that follow redirections may still give up on one. */
const MOVING = ["TRYAGAIN", "ASK ", "MOVED "];
/** What a script is told that forgets a key and writes it again while the slot moves. */
const NOT_LOCAL = "ERR Script attempted to access a non local key";

export function connect(client: RedisClient): Connection {
  const runner: unknown = client;
  if (isNodeRedis(runner)) {
    if (isNodeRedisCluster(runner)) {
      // Not evalSha: version 4 sends it to any node.
      const send = (command: string, text: string): Run => {
        return (keys, args) =>
          runner.sendCommand(keys[0], false, [command, text, String(keys.length), ...keys, ...args]);
      };
      return withFallback(true, { cached: send("EVALSHA", sha), whole: send("EVAL", script) });
    }
    return withFallback(false, {
      cached: (keys, args) => runner.evalSha(sha, { keys, arguments: args }),
      whole: (keys, args) => runner.eval(script, { keys, arguments: args }),
    });
  }
  if (isScriptRunner(runner)) {
    const cluster = "isCluster" in runner && runner.isCluster === true;
    return withFallback(cluster, {
      cached: (keys, args) => runner.evalsha(sha, keys.length, ...keys, ...args),
      whole: (keys, args) => runner.eval(script, keys.length, ...keys, ...args),
    });
  }
  throw new SluiceError(
    "INVALID_OPTION",
    `redisStore takes a client of ioredis or node-redis, or { evalsha, eval }; got ${show(client)}.`,
  );
}

type Run = (keys: string[], args: string[]) => Promise<unknown>;

/** Runs by digest; where the server does not know the script (new, restarted, flushed), sends it whole. */
function withFallback(cluster: boolean, { cached, whole }: { cached: Run; whole: Run }): Connection {
  async function run(keys: string[], args: string[], repeatable: boolean): Promise<unknown> {
    let known = true;
    for (let tries = 0; ; ) {
      try {
        return await (known ? cached : whole)(keys, args);
      } catch (error) {
        if (known && says(error, "NOSCRIPT")) {
          known = false;
          continue;
        }
        const isMoving = MOVING.some((code) => says(error, code)) || (repeatable && says(error, NOT_LOCAL));
        if (!isMoving || tries >= MOVING_RETRIES) throw error;
        tries++;
        await new Promise((resolve) => setTimeout(resolve, MOVING_RETRY_MS));
      }
    }
  }
  return { run, cluster };
}

function says(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}

function isNodeRedis(client: unknown): client is NodeRedisRunner {
  return hasFunctions(client, "evalSha", "eval");
}

interface NodeRedisCluster {
  sendCommand(firstKey: string, isReadOnly: boolean, args: string[]): Promise<unknown>;
}

/** A cluster client has the masters it found; a plain one has not. */
function isNodeRedisCluster(client: object): client is NodeRedisCluster {
  return "masters" in client && hasFunctions(client, "sendCommand");
}

function isScriptRunner(client: unknown): client is ScriptRunner {
  return hasFunctions(client, "evalsha", "eval");
}

function hasFunctions(client: unknown, ...names: string[]): boolean {
  if ((typeof client !== "object" && typeof client !== "function") || client === null) return false;
  return names.every((name) => typeof (client as Record<string, unknown>)[name] === "function");
}
