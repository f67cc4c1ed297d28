import fc from "fast-check";
import { expect, test } from "vitest";
import { compileTemplate, type TemplateSource } from "./template.js";

function source(headers: Readonly<Record<string, string>> = {}, ip = "10.0.0.1"): TemplateSource {
  return {
    ip: () => ip,
    method: () => "GET",
    path: () => "/a b",
    host: () => "example.org",
    header: (name) => headers[name],
  };
}

test("a template takes its values from the request", () => {
  const { render } = compileTemplate("{method} {path}|{host}|{header:X-Key}");
  expect(render(source({ "x-key": "k" }))).toBe("GET /a%20.b|example.org|k");
});

test("one value stands as it is", () => {
  expect(compileTemplate("key:{header:x-key}").render(source({ "x-key": "a:b%c" }))).toBe("key:a:b%c");
});

test("a missing value is the client's address, and no value equals it", () => {
  const { render } = compileTemplate("{header:x-key}");
  expect(render(source())).toBe("?10.0.0.1");
  expect(render(source({ "x-key": "?10.0.0.1" }))).toBe("??10.0.0.1");
  expect(render(source({ "x-key": "x".repeat(5000) }))).toBe("?10.0.0.1");
});

test("different values never give one key", () => {
  const { render } = compileTemplate("a{header:x} & %{header:y}z{header:z}");
  const value = fc.string({
    unit: fc.constantFrom("a", " ", "&", "%", "z", "?", ".", "2"),
    minLength: 1,
    maxLength: 6,
  });
  fc.assert(
    fc.property(fc.tuple(value, value, value), fc.tuple(value, value, value), (a, b) => {
      const keyOf = ([x, y, z]: [string, string, string]) => render(source({ x, y, z }));
      expect(keyOf(a) === keyOf(b)).toBe(a.join("\0") === b.join("\0"));
    }),
    { numRuns: 2000 },
  );
});
