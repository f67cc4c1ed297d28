/** One thing that is wrong with a configuration file, and where. */
export interface Problem {
  readonly file: string;
  /** Counted from 1; 0 where the file as a whole is meant. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The offending line with a mark under the offending text. */
  readonly excerpt: string;
}

/** A configuration that cannot be used, with all that is wrong with it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    const many = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    super(`${many} in the configuration:\n${problems.map(written).join("\n")}`);
    this.problems = problems;
  }

  /** The places and what is wrong there, without the files' own text: for logs and whoever may ask. */
  get summary(): string {
    return this.problems.map((problem) => written({ ...problem, excerpt: "" })).join("; ");
  }
}

/** Passwords in URLs are nobody's to read. */
export function withoutSecrets(text: string): string {
  return text.replace(/(\w:\/\/)[^\s"'/]*@/g, "$1…@");
}

/** `file:line:column: message` with the line it is about. */
export function written({ file, line, column, message, excerpt }: Problem): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place}: ${message}${excerpt === "" ? "" : `\n${excerpt}`}`;
}

const WIDEST = 120;

/** The line with a mark under `length` characters from the column. */
export function excerptOf(lines: readonly string[], line: number, column: number, length: number): string {
  const whole = (lines[line - 1] ?? "").replaceAll("\t", " ");
  const from = column > WIDEST - 20 ? column - 20 : 0;
  const shown = whole.slice(from, from + WIDEST);
  const marks = Math.max(1, Math.min(length, shown.length - (column - 1 - from)));
  const margin = String(line).length;
  return [
    `  ${line} | ${shown}`,
    `  ${" ".repeat(margin)} | ${" ".repeat(column - 1 - from)}${"^".repeat(marks)}`,
  ].join("\n");
}
