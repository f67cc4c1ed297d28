// Key templates over a forwarded request: "{ip}", "{header:x-api-key}", "{method} {path}".

/** What a template can read of a request. */
export interface TemplateSource {
  /** The client's address. */
  ip(): string;
  method(): string;
  path(): string;
  host(): string;
  header(name: string): string | undefined;
}

export interface Template {
  /** What is wrong with it, if something is. */
  readonly problem: string | undefined;
  readonly render: (source: TemplateSource) => string;
}

type Part = { readonly literal: string } | { readonly read: (source: TemplateSource) => string | undefined };

/** Longer values count as missing: whoever sends one counts by address. */
const LONGEST_VALUE = 1024;
const ALLOWED = "{ip}, {method}, {path}, {host} and {header:NAME}";

/**
 * Compiles a template. Where several values stand in one, what separates them is escaped inside
 * them, so that different values never give one key. A missing value is the client's address, marked
 * so that no value that a client sends equals it.
 */
export function compileTemplate(template: string): Template {
  const parts: Part[] = [];
  let problem: string | undefined;
  for (const piece of template.split(/(\{[^{}]*\})/)) {
    if (piece === "") continue;
    const read = piece.startsWith("{") ? reader(piece.slice(1, -1)) : undefined;
    if (read) parts.push({ read });
    else if (/[{}]/.test(piece)) problem ??= `has ${JSON.stringify(piece)}; allowed are ${ALLOWED}`;
    else parts.push({ literal: piece });
  }
  const values = parts.filter((part) => "read" in part).length;
  if (values === 0)
    problem ??= `names nothing of the request, so all requests would count as one; allowed are ${ALLOWED}`;
  if (parts.some((part, p) => "read" in part && p > 0 && "read" in (parts[p - 1] as Part))) {
    problem ??= "has two values with nothing between them, so that different requests could give one key";
  }
  const literals = values > 1 ? parts.map((part) => ("literal" in part ? part.literal : "")).join("") : "";
  const escaped = new RegExp(
    `[%${[...new Set(literals)].map((char) => `\\u{${char.codePointAt(0)?.toString(16)}}`).join("")}]`,
    "gu",
  );
  const render = (source: TemplateSource): string => {
    let key = "";
    for (const part of parts) {
      if ("literal" in part) key += part.literal;
      else {
        const value = present(part.read(source), source);
        key += values > 1 ? value.replace(escaped, escapeChar) : value;
      }
    }
    return key;
  };
  return { problem, render };
}

function reader(name: string): ((source: TemplateSource) => string | undefined) | undefined {
  if (name === "ip") return (source) => source.ip();
  if (name === "method") return (source) => source.method();
  if (name === "path") return (source) => source.path();
  if (name === "host") return (source) => source.host();
  const header = /^header:([\w-]+)$/.exec(name)?.[1]?.toLowerCase();
  return header === undefined ? undefined : (source) => source.header(header);
}

function present(value: string | undefined, source: TemplateSource): string {
  if (value === undefined || value === "" || value.length > LONGEST_VALUE) return `?${source.ip()}`;
  return value.startsWith("?") ? `?${value}` : value;
}

function escapeChar(char: string): string {
  return `%${(char.codePointAt(0) ?? 0).toString(16)}.`;
}
