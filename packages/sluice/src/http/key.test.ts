import { expect, test } from "vitest";
import { type KeyOption, type KeySources, keyReader } from "./key.js";

interface Fake {
  readonly ip: string;
  readonly user?: unknown;
  readonly apiKey?: string;
}
const sources: KeySources<Fake> = {
  ip: ({ ip }) => ip,
  header: ({ apiKey }, name) => (name === "x-api-key" ? apiKey : undefined),
  route: () => "/users/:id",
};
const keyOf = (option: KeyOption<Fake>, request: Fake) => keyReader(option, sources).keyOf(request);
const user = ({ user }: Fake) => user as string;

test("one part is a text, several are a record", () => {
  const request: Fake = { ip: "192.0.2.1", user: "bob", apiKey: "k1" };
  expect(keyOf("ip", request)).toBe("192.0.2.1");
  expect(keyOf("header:X-Api-Key", request)).toBe("k1");
  expect(keyOf(user, request)).toBe("bob");
  expect(keyOf(["ip", "route", "header:x-api-key"], request)).toEqual({
    ip: "192.0.2.1",
    route: "/users/:id",
    "x-api-key": "k1",
  });
  expect(keyOf({ account: user, address: "ip" }, request)).toEqual({ account: "bob", address: "192.0.2.1" });
  expect(keyOf(() => ({ a: 1 }), request)).toEqual({ a: 1 });
});

test.each([undefined, null, "", "x".repeat(2000), {}, ["bob"], Number.NaN])(
  "for a part that is %j the address stands in",
  (value) => {
    expect(keyOf({ account: user }, { ip: "192.0.2.1", user: value })).toEqual({ account: "?192.0.2.1" });
  },
);

test("no value that a client sends equals an address that stands in", () => {
  const forged = keyOf({ account: user }, { ip: "198.51.100.1", user: "?192.0.2.1" });
  expect(forged).not.toEqual(keyOf({ account: user }, { ip: "192.0.2.1" }));
  expect(keyOf(user, { ip: "198.51.100.1", user: "?192.0.2.1" })).not.toBe(keyOf(user, { ip: "192.0.2.1" }));
});

test.each([
  [42, "must be a part"],
  ["cookie", 'parts are "ip", "route"'],
  ["header:", 'parts are "ip", "route"'],
  [[], "or several parts; got an array"],
  [["ip", "ip"], "names a part twice"],
  [{ "a\r\nb": "ip" }, "A key part's name"],
])("key %j is refused", (option, message) => {
  expect(() => keyReader(option as never, sources)).toThrow(message);
});

test("where there are no routes, a route is refused", () => {
  const { ip, header } = sources;
  expect(() => keyReader("route", { ip, header })).toThrow("no routes here");
});
