import { describe, expect, test } from "vitest";
import { clientText, contains, parseAddress, parseNetwork } from "./address.js";

const client = (text: string, prefix = 64) => {
  const address = parseAddress(text);
  return address && clientText(address, prefix);
};

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:c000:201", "192.0.2.1"],
  ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
  ["0000:0000:0000:0000:0000:ffff:c000:0201", "192.0.2.1"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:DB8:0:0:ffff::", "2001:db8:0:0::/64"],
  ["2001:db8:0:1::1", "2001:db8:0:1::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["::192.0.2.1", "0:0:0:0::/64"],
])("%s is the client %s, by its bits", (text, expected) => {
  expect(client(text)).toBe(expected);
});

test("a prefix may end anywhere, and the whole address is one client at 128", () => {
  expect(client("2001:db8:abcd:12ff::1", 56)).toBe("2001:db8:abcd:1200::/56");
  expect(client("2001:db8:abcd:12ff::1", 48)).toBe("2001:db8:abcd::/48");
  expect(client("2001:db8::1", 128)).toBe("2001:db8:0:0:0:0:0:1");
  expect(client("2001:db8::ffff", 127)).toBe("2001:db8:0:0:0:0:0:fffe/127");
});

test.each([
  "",
  "1.2.3",
  "1.2.3.4.5",
  "256.1.1.1",
  "01.2.3.4",
  "1.2.3.4 ",
  "-1.2.3.4",
  "0x1.2.3.4",
  "1e1.2.3.4",
  "NaN.NaN.NaN.NaN",
  "1234",
  "face",
  "::1]/[",
  "::1::",
  ":::",
  "1:2:3:4:5:6:7",
  "g::1",
])("%j is no address", (text) => expect(parseAddress(text)).toBeUndefined());

test.each([
  "1:2:3:4:5:6:7:8:9",
  "1::2:3:4:5:6:7:8",
  "12345::",
  "1.2.3.4::",
  "::1.2.3.4:5",
  "::ffff:01.2.3.4",
  "::ffff:1.2.3",
  `fe80::1%${"x".repeat(1000)}`,
  "unknown",
  "_hidden",
])("%j is no address either", (text) => expect(parseAddress(text)).toBeUndefined());

describe("networks", () => {
  const inside = (network: string, text: string) => {
    const [parsed, address] = [parseNetwork(network), parseAddress(text)];
    return parsed && address && contains(parsed, address);
  };

  test.each([
    ["10.0.0.0/8", "10.255.0.1", true],
    ["10.0.0.0/8", "11.0.0.1", false],
    ["10.0.0.0/8", "::ffff:10.1.2.3", true],
    ["::ffff:10.0.0.0/104", "10.1.2.3", true],
    ["192.0.2.128/25", "192.0.2.127", false],
    ["192.0.2.1", "192.0.2.1", true],
    ["0.0.0.0/0", "203.0.113.9", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["2001:db8::/33", "2001:db8:7fff::1", true],
    ["2001:db8::/33", "2001:db8:8000::1", false],
  ])("%s has %s: %s", (network, text, expected) => expect(inside(network, text)).toBe(expected));

  test.each(["10.0.0.0/33", "2001:db8::/129", "10.0.0.0/", "/8", "::ffff:10.0.0.0/8", "proxy"])(
    "%j is no network",
    (text) => expect(parseNetwork(text)).toBeUndefined(),
  );
});
