import { memoryStore } from "sluice";
import { expect, test } from "vitest";
import { parseConfiguration } from "../config/load.js";
import { LimiterTallies } from "../metrics.js";
import { descriptor } from "../testing/testServer.js";
import { LiveDomain } from "./liveDomain.js";
import { RequestError, type RequestedDescriptor } from "./messages.js";
import { shouldRateLimit } from "./service.js";

/** Decides on a domain of these descriptors, on time that the test sets. */
function world(descriptors: string) {
  const [config] = parseConfiguration([
    { name: "x", text: `domain: x\ndescriptors:\n${descriptors}` },
  ]).domains;
  const time = { now: 1_000_000 };
  const store = memoryStore({ clock: () => time.now });
  const tallies = new LimiterTallies();
  const catalog = {
    limiters: new Map(),
    domains: new Map([["x", new LiveDomain(config!, () => store, tallies)]]),
  };
  const decide = async (descriptors: readonly RequestedDescriptor[], hitsAddend = 0, domain = "x") =>
    shouldRateLimit(catalog, { domain, descriptors, hitsAddend }, Infinity);
  return { decide, time, tallies };
}

const codes = ({ statuses }: { statuses: readonly { code: string }[] }) => statuses.map(({ code }) => code);
const left = ({ statuses }: { statuses: readonly { limitRemaining?: number }[] }) =>
  statuses.map(({ limitRemaining }) => limitRemaining);

const TWO = `
  - { key: ip, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 2 } }
`;

test("there is one status per descriptor, in order", async () => {
  const { decide } = world(TWO);
  expect(
    await decide([descriptor({ user: "7" }), descriptor({ other: "x" }), descriptor({ ip: "1" })]),
  ).toEqual({
    overallCode: "OK",
    statuses: [
      {
        code: "OK",
        currentLimit: { requestsPerUnit: 2, unit: "HOUR" },
        limitRemaining: 1,
        durationUntilReset: { seconds: 3600, nanos: 0 },
      },
      { code: "OK" },
      {
        code: "OK",
        currentLimit: { requestsPerUnit: 3, unit: "MINUTE" },
        limitRemaining: 2,
        durationUntilReset: { seconds: 60, nanos: 0 },
      },
    ],
  });
});

test("a refused request charges none of its descriptors", async () => {
  const { decide } = world(TWO);
  await decide([descriptor({ user: "7" })], 2);
  const refused = await decide([descriptor({ ip: "1" }), descriptor({ user: "7" })]);
  expect(refused.overallCode).toBe("OVER_LIMIT");
  expect(codes(refused)).toEqual(["OK", "OVER_LIMIT"]);
  expect(left(await decide([descriptor({ ip: "1" })]))).toEqual([2]);
});

test("the window slides, and the refusal tells when to come again", async () => {
  const { decide, time } = world(TWO);
  await decide([descriptor({ ip: "1" })], 2);
  time.now += 30_500;
  await decide([descriptor({ ip: "1" })]);
  const refused = await decide([descriptor({ ip: "1" })], 2);
  expect(refused.statuses[0]?.durationUntilReset).toEqual({ seconds: 29, nanos: 500_000_000 });
  expect(refused.responseHeadersToAdd).toEqual([{ key: "retry-after", value: "30" }]);
  time.now += 29_499;
  expect((await decide([descriptor({ ip: "1" })], 2)).overallCode).toBe("OVER_LIMIT");
  time.now += 1;
  expect((await decide([descriptor({ ip: "1" })], 2)).overallCode).toBe("OK");
});

test("hits_addend of the request is 1 where it is 0; a descriptor's own goes first, and 0 only looks", async () => {
  const { decide } = world(TWO);
  expect(left(await decide([descriptor({ ip: "1" })], 0))).toEqual([2]);
  expect(left(await decide([{ ...descriptor({ ip: "1" }), hitsAddend: { value: 2 } }], 1))).toEqual([0]);
  const looked = await decide([{ ...descriptor({ ip: "1" }), hitsAddend: { value: 0 } }]);
  expect([looked.overallCode, ...left(looked)]).toEqual(["OK", 0]);
});

test("hits beyond what numbers hold never fit, and charge nothing", async () => {
  const { decide } = world(TWO);
  const huge = await decide([{ ...descriptor({ ip: "1" }), hitsAddend: { value: 2 ** 64 } }]);
  expect([huge.overallCode, ...left(huge)]).toEqual(["OVER_LIMIT", 3]);
});

test("descriptors that fall on one count are charged their sum", async () => {
  const { decide } = world(TWO);
  const twice = [descriptor({ user: "7" }), descriptor({ user: "7" })];
  expect(left(await decide(twice))).toEqual([0, 0]);
  expect((await decide([descriptor({ user: "7" })])).overallCode).toBe("OVER_LIMIT");
  expect(
    (
      await decide([
        ...twice,
        descriptor({ user: "8" }),
        descriptor({ user: "8" }),
        descriptor({ user: "8" }),
      ])
    ).overallCode,
  ).toBe("OVER_LIMIT");
});

test("an unlimited descriptor passes with all that the protocol can say", async () => {
  const { decide } = world("  - { key: ip, rate_limit: { unlimited: true } }");
  expect(await decide([descriptor({ ip: "1" })])).toEqual({
    overallCode: "OK",
    statuses: [{ code: "OK", limitRemaining: 4_294_967_295 }],
  });
});

test("a limit of 0 refuses, and charges none of the others", async () => {
  const { decide, tallies } = world(
    `${TWO}  - { key: banned, rate_limit: { unit: day, requests_per_unit: 0 } }`,
  );
  const refused = await decide([descriptor({ banned: "1" }), descriptor({ ip: "1" })]);
  expect([refused.overallCode, ...codes(refused)]).toEqual(["OVER_LIMIT", "OVER_LIMIT", "OK"]);
  expect(left(await decide([descriptor({ ip: "1" })]))).toEqual([2]);
  expect(tallies.rule("banned").outcomes.denied).toBe(1);
});

test("a shadow is decided and counted apart, and refuses nothing", async () => {
  const { decide, tallies } = world(`
  - { key: ip, rate_limit: { unit: minute, requests_per_unit: 3 } }
  - { key: user, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: org, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
`);
  const request = [descriptor({ ip: "1" }), descriptor({ user: "7" }), descriptor({ org: "o" })];
  expect(codes(await decide(request))).toEqual(["OK", "OK", "OK"]);
  const second = await decide(request);
  expect([second.overallCode, ...codes(second)]).toEqual(["OK", "OK", "OK", "OVER_LIMIT"]);
  expect(left(second)).toEqual([1, 0, 0]);
  expect(tallies.rule("user").outcomes).toMatchObject({ shadow_allowed: 1, shadow_denied: 1, denied: 0 });
  expect(tallies.rule("ip").outcomes).toMatchObject({ allowed: 2 });
});

test("what an enforced descriptor refuses is not counted by a trial", async () => {
  const { decide } = world(`
  - { key: ip, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: user, shadow_mode: true, rate_limit: { unit: minute, requests_per_unit: 5 } }
`);
  const request = [descriptor({ ip: "1" }), descriptor({ user: "7" })];
  for (let n = 0; n < 4; n++) await decide(request);
  expect(left(await decide([descriptor({ user: "7" })]))).toEqual([3]);
});

test("a limit that replaces others stands in their place", async () => {
  const { decide } = world(`
  - { key: ip, rate_limit: { unit: minute, requests_per_unit: 1, name: everyone } }
  - { key: plan, value: gold, rate_limit: { unit: minute, requests_per_unit: 3, name: gold, replaces: [{ name: everyone }] } }
`);
  const gold = [descriptor({ ip: "1" }), descriptor({ plan: "gold" })];
  for (let n = 0; n < 3; n++) expect((await decide(gold)).overallCode).toBe("OK");
  expect((await decide(gold)).overallCode).toBe("OVER_LIMIT");
  expect((await decide(gold)).statuses[0]).toEqual({ code: "OK" });
  expect((await decide([descriptor({ ip: "1" })])).statuses[0]?.currentLimit).toMatchObject({
    name: "everyone",
  });
});

test("a limit that comes with the request goes before the file's, in a known domain alone", async () => {
  const { decide } = world(TWO);
  const own = { ...descriptor({ anything: "1" }), limit: { requestsPerUnit: 1, unit: "HOUR" } };
  expect((await decide([own])).statuses[0]?.currentLimit).toEqual({ requestsPerUnit: 1, unit: "HOUR" });
  expect((await decide([own])).overallCode).toBe("OVER_LIMIT");
  expect((await decide([{ ...own, limit: { requestsPerUnit: 2, unit: "HOUR" } }])).overallCode).toBe("OK");
  expect(await decide([own], 0, "unknown")).toEqual({ overallCode: "OK", statuses: [{ code: "OK" }] });
  await expect(decide([{ ...own, limit: { requestsPerUnit: 2, unit: "UNKNOWN" } }])).rejects.toThrow(
    RequestError,
  );
});

test("so many different limits of requests' own are kept, and no more", async () => {
  const { decide } = world(TWO);
  const own = (n: number) => [{ ...descriptor({ a: "1" }), limit: { requestsPerUnit: n, unit: "HOUR" } }];
  for (let n = 1; n <= 1000; n++) await decide(own(n));
  await expect(decide(own(1001))).rejects.toThrow("At most 1000 different limits");
  expect((await decide(own(1000))).overallCode).toBe("OK");
});

test("requests that break the protocol are errors", async () => {
  const { decide } = world(TWO);
  await expect(decide([], 1)).rejects.toThrow("descriptors must not be empty");
  await expect(decide([descriptor({ a: "1" })], 1, "")).rejects.toThrow("domain must not be empty");
  await expect(decide(Array(101).fill(descriptor({ a: "1" })))).rejects.toThrow("100 descriptors");
  await expect(decide([descriptor({ a: "x".repeat(5000) })])).rejects.toThrow("4096 characters");
  const nothing = { limiters: new Map(), domains: new Map() };
  expect(() =>
    shouldRateLimit(nothing, { domain: "x", descriptors: [descriptor({ a: "1" })], hitsAddend: 1 }, 1),
  ).toThrow("No domain is configured");
});
