// Whom a request counts for, put together from parts: address, route, headers, and whatever a function reads.
import { show } from "../errors.js";
import type { Key } from "../key.js";
import { checkName } from "../rule.js";
import { refuseOption } from "./options.js";

/** A part that every request has. `route` is the pattern, such as "/users/:id", never what the client typed. */
export type NamedPart = "ip" | "route" | `header:${string}`;

/** Reads one part; undefined when the request has none. */
export type PartOf<Request> = (request: Request) => string | number | undefined;

/**
 * Whom a request counts for:
 * - a part: `"ip"` (the default), `"header:x-api-key"`, or a function such as `(request) => request.user?.id`
 * - several parts, as a record key that rules may count by: `["ip", "route"]`, or under names of your own,
 *   `{ account: (request) => request.body.email, ip: "ip" }`
 *
 * Where a part is missing the client's address stands in for it, marked so that it never equals a real one.
 */
export type KeyOption<Request> =
  | NamedPart
  | ((request: Request) => Key | undefined)
  | readonly NamedPart[]
  | Readonly<Record<string, NamedPart | PartOf<Request>>>;

/** What a platform can tell of its requests. */
export interface KeySources<Request> {
  /** The client, or an error when nothing tells who it is. */
  ip(request: Request): string;
  header(request: Request, name: string): string | undefined;
  /** Missing where the platform has no routes. */
  route?: ((request: Request) => string) | undefined;
}

/** Longer parts count as missing: whoever sends one counts by address. */
const LONGEST_PART = 1024;

/** Compiles the option. `sample` has the parts that every key will have; undefined where a function makes keys. */
export function keyReader<Request>(
  option: KeyOption<Request> = "ip",
  { ip, header, route }: KeySources<Request>,
): { readonly keyOf: (request: Request) => Key; readonly sample: Key | undefined } {
  const present = (value: unknown, request: Request): string => {
    if (typeof value === "string" && value !== "" && value.length <= LONGEST_PART) return unmarked(value);
    return Number.isFinite(value) ? String(value) : `?${ip(request)}`;
  };

  /** Reads a part of every request: where one has none, the client's address marked as a stand-in. */
  function partReader(part: NamedPart | PartOf<Request>): (request: Request) => string {
    if (part === "ip") return ip;
    const read = typeof part === "function" ? part : namedPart(part);
    return (request) => present(read(request), request);
  }

  function namedPart(part: NamedPart): PartOf<Request> {
    if (part === "route") {
      return route ?? refuseOption('key has "route", but there are no routes here; use a function instead');
    }
    const [, name] = /^header:([\w-]+)$/.exec(part) ?? [];
    if (name === undefined) {
      refuseOption(`key has ${show(part)}; parts are "ip", "route", "header:<name>" and functions`);
    }
    const lowerCase = name.toLowerCase();
    return (request) => header(request, lowerCase);
  }

  if (typeof option === "string") return { keyOf: partReader(option), sample: option };
  if (typeof option === "function") {
    const keyOf = (request: Request): Key => {
      const key: unknown = option(request);
      if (typeof key === "string" && key !== "") return unmarked(key);
      return typeof key === "object" && key !== null ? (key as Key) : present(key, request);
    };
    return { keyOf, sample: undefined };
  }
  const given: readonly (readonly [string, NamedPart | PartOf<Request>])[] = Array.isArray(option)
    ? option.map((part: NamedPart) => [String(part).replace(/^header:/, ""), part])
    : Object.entries(Object(option));
  if (given.length === 0) {
    refuseOption(`key must be a part such as "ip", a function, or several parts; got ${show(option)}`);
  }
  const readers = new Map(
    given.map(([name, part]) => [checkName("A key part's name", name), partReader(part)]),
  );
  if (readers.size < given.length) refuseOption(`key names a part twice: ${[...readers.keys()].join(", ")}`);
  const keyOf = (request: Request): Key => {
    const key: Record<string, string> = {};
    for (const [name, read] of readers) key[name] = read(request);
    return key;
  };
  return { keyOf, sample: Object.fromEntries(given.map(([name]) => [name, name])) };
}

/** Doubles a leading mark, so that no value that a client sends equals a stand-in. */
function unmarked(value: string): string {
  return value.startsWith("?") ? `?${value}` : value;
}
