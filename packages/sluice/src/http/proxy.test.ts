import { describe, expect, test } from "vitest";
import { type AddressOptions, clientReader } from "./proxy.js";

/** Who is seen when a peer sends this header. */
function seen(options: AddressOptions, value: string | undefined, peer: string | undefined = "10.0.0.1") {
  const { trustProxy: trust } = options;
  const header = typeof trust === "object" && "header" in trust ? trust.header : "x-forwarded-for";
  const read = (_: object, name: string) => (name === header ? value : undefined);
  return clientReader(options, read)({}, peer);
}

describe("by number of hops", () => {
  test.each([
    [1, "203.0.113.9", "203.0.113.9"],
    [1, "198.51.100.1, 203.0.113.9", "203.0.113.9"],
    [2, "198.51.100.1, 203.0.113.9", "198.51.100.1"],
    [2, "192.0.2.1, 198.51.100.1, 203.0.113.9", "198.51.100.1"],
    [3, "203.0.113.9", "203.0.113.9"],
    [1, undefined, "10.0.0.1"],
    [1, "", "10.0.0.1"],
    [1, "unknown", "10.0.0.1"],
    [2, "garbage, 203.0.113.9", "203.0.113.9"],
    [2, ", 203.0.113.9", "203.0.113.9"],
    [1, "203.0.113.9:4711", "203.0.113.9"],
    [1, "[2001:db8::1]:443", "2001:db8:0:0::/64"],
    [1, "  203.0.113.9  ", "203.0.113.9"],
  ])("%i hops, %j: %s", (trustProxy, value, expected) => expect(seen({ trustProxy }, value)).toBe(expected));

  test("a Unix socket is a hop, too", () => {
    expect(seen({ trustProxy: 1 }, "203.0.113.9", undefined)).toBe("203.0.113.9");
  });
});

describe("by address", () => {
  const trustProxy = ["10.0.0.0/8", "2001:db8::/32"];

  test.each([
    ["203.0.113.9", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9", "203.0.113.9"],
    ["1.1.1.1, 203.0.113.9, 10.3.3.3, 2001:db8::7", "203.0.113.9"],
    ["10.2.2.2, 10.3.3.3", "10.2.2.2"],
    ["forged, 10.3.3.3", "10.3.3.3"],
  ])("%j: %s", (value, expected) => expect(seen({ trustProxy }, value)).toBe(expected));

  test("a peer that is not trusted is the client, whatever it sends", () => {
    expect(seen({ trustProxy }, "203.0.113.9", "192.0.2.7")).toBe("192.0.2.7");
  });
});

describe("Forwarded", () => {
  const trustProxy = { hops: 1, header: "forwarded" };

  test.each([
    ["for=203.0.113.9", "203.0.113.9"],
    ["For=203.0.113.9;proto=https;by=10.0.0.1", "203.0.113.9"],
    ['proto=https; for="[2001:db8:cafe::17]:4711"', "2001:db8:cafe:0::/64"],
    ['for=1.1.1.1, for="203.0.113.9:80"', "203.0.113.9"],
    ['for="1.1.1.1, for=203.0.113.9', "203.0.113.9"],
    ['for="\\", for=1.1.1.1', "1.1.1.1"],
    ["for=unknown", "10.0.0.1"],
    ["for=_secret", "10.0.0.1"],
    ["by=203.0.113.9", "10.0.0.1"],
    ["notfor=203.0.113.9", "10.0.0.1"],
  ])("%j: %s", (value, expected) => expect(seen({ trustProxy }, value)).toBe(expected));

  test("is not read where the proxies write X-Forwarded-For, nor the other way round", () => {
    const read = (_: object, name: string) =>
      ({ forwarded: "for=1.1.1.1", "x-forwarded-for": "2.2.2.2" })[name];
    expect(clientReader({ trustProxy: 1 }, read)({}, "10.0.0.1")).toBe("2.2.2.2");
    expect(clientReader({ trustProxy }, read)({}, "10.0.0.1")).toBe("1.1.1.1");
    expect(clientReader({ trustProxy: { hops: 1, header: "CF-Connecting-IP" } }, read)({}, "10.0.0.1")).toBe(
      "10.0.0.1",
    );
  });
});

test.each([
  [true, "the client's own word"],
  ["1", "must be a number of proxies or a list"],
  [1.5, "must be a whole number"],
  [-1, "must be a whole number"],
  [[], 'must be a list such as ["10.0.0.0/8"]'],
  [["10.0.0.0/99"], "neither an address nor a CIDR"],
  [{ hops: 1, from: ["10.0.0.1"] }, "one of hops and from"],
  [{ hops: 1, header: "a b" }, "must be a header's name"],
])("trustProxy %j is refused", (trustProxy, message) => {
  expect(() => clientReader({ trustProxy: trustProxy as never }, () => undefined)).toThrow(message);
});

test("10,000 addresses inside one /64 are one client, and their neighbours are others", () => {
  const clients = new Set<string | undefined>();
  for (let n = 0; n < 10_000; n++) {
    const host = [n * 7919, n * 104_729, n, n * 31].map((group) => (group % 65_536).toString(16)).join(":");
    clients.add(seen({ trustProxy: 1 }, `2001:db8:1:2:${host}`));
  }
  expect([...clients]).toEqual(["2001:db8:1:2::/64"]);
  expect(seen({ trustProxy: 1 }, "2001:db8:1:3::1")).toBe("2001:db8:1:3::/64");
  expect(seen({ trustProxy: 1, ipv6Prefix: 48 }, "2001:db8:1:3::1")).toBe("2001:db8:1::/48");
});
