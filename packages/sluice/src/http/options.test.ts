import { expect, test } from "vitest";
import { createLimiter } from "../limiter.js";
import { slidingLog } from "../rule.js";
import { createGuard, type Platform } from "./guard.js";
import type { GuardOptions } from "./options.js";

const hour = (limit: number, by?: readonly string[]) =>
  createLimiter({ rules: slidingLog({ name: "hour", limit, window: "1h", ...(by && { by }) }) });
const platform: Platform<object> = { peer: () => "192.0.2.1", header: () => undefined };
const limiter = hour(1);

test.each<[object | undefined, string]>([
  [undefined, "A guard takes a limiter, made by"],
  [{}, "or a limit and a window; got limiter undefined, limit undefined, window undefined"],
  [{ limit: 1 }, "or a limit and a window; got limiter undefined, limit 1, window undefined"],
  [{ limiter, limit: 1, window: "1m" }, 'got limiter an object, limit 1, window "1m"'],
  [{ limiter: {} }, "made by createLimiter or chosen by a function"],
  [{ limit: 0, window: "1m" }, "A guard's limit"],
  [{ limiter, headers: "draft-8" }, "headers must be one of"],
  [{ limiter, onOutage: "pass" }, 'onOutage must be one of "open", "closed"; got "pass"'],
  [{ limiter, skip: true }, "skip must be a function"],
  [{ limiter, settle: 1 }, "settle must be a function"],
  [{ limiter, cost: Number.NaN }, "A guard's cost"],
  [{ limiter, unit: 'x"\r\n' }, "A guard's unit"],
  [{ limiter, timeoutMs: 0 }, "timeoutMs"],
  [{ limiter, ipv6Prefix: 0 }, "ipv6Prefix"],
  [{ limiter, trustProxy: true }, "the client's own word"],
  [{ limiter, trustproxy: 1 }, 'A guard has no option "trustproxy"; it has limiter, limit, window, key,'],
  [{ limiter, hook: "preHandler" }, 'A guard has no option "hook"'],
  [
    { limiter: hour(1, ["user"]) },
    'Rule "hour" counts by user, so its key must be an object with these; got "ip"',
  ],
  [{ limiter: hour(1, ["user"]), key: ["ip"] }, 'counts by "user", so that part of the key must be'],
])("%j are refused at the start", (options, message) => {
  expect(() => createGuard(options as GuardOptions<object>, platform)).toThrow(message);
});

test("an option that is undefined is as if it were left out", () => {
  const options = { limiter, trustproxy: undefined, key: undefined } as unknown as GuardOptions<object>;
  expect(createGuard(options, platform).admit({})).toMatchObject({ decision: { allowed: true } });
});
