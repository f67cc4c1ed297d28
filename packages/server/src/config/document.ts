// A YAML file that still knows where each of its values stands.
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { z } from "zod";
import { excerptOf, type Problem, withoutSecrets } from "./problem.js";

/** Larger files are refused before they are parsed. */
const LARGEST_FILE = 4_194_304;

type Path = readonly PropertyKey[];

export class YamlFile {
  readonly name: string;
  readonly problems: Problem[] = [];
  /** The content as plain data; undefined where it could not be read. */
  readonly content: unknown;
  readonly #lines: readonly string[];
  readonly #counter = new LineCounter();
  readonly #document: Document | undefined;

  constructor(name: string, source: string) {
    this.name = name;
    this.#lines = source.length > LARGEST_FILE ? [] : source.split(/\r?\n/);
    if (source.length > LARGEST_FILE) {
      this.#add(0, 0, `has ${source.length} characters; at most ${LARGEST_FILE} are read`);
      return;
    }
    try {
      this.#document = parseDocument(source, {
        lineCounter: this.#counter,
        prettyErrors: false,
        merge: true,
        stringKeys: true,
      });
      for (const { pos, message } of [...this.#document.errors, ...this.#document.warnings]) {
        this.#add(pos[0], pos[1], message);
      }
      if (this.problems.length === 0) this.content = this.#document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      const reason = error instanceof RangeError ? "is nested too deeply" : String((error as Error).message);
      this.#add(0, 0, `cannot be read: ${reason}`);
    }
  }

  /** The content in the schema's shape; undefined, with problems added, where it has another. */
  as<Schema extends z.ZodType>(schema: Schema): z.output<Schema> | undefined {
    if (this.problems.length > 0) return undefined;
    let parsed: z.ZodSafeParseResult<z.output<Schema>>;
    try {
      parsed = schema.safeParse(this.content);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#add(0, 0, "is nested too deeply");
      return undefined;
    }
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues.flatMap((each) => leaves(each as Issue))) {
      if (issue.code === "unrecognized_keys") {
        for (const key of issue.keys ?? []) this.fail([...issue.path, key], issue.message, "key");
      } else {
        const isKey = issue.code === "invalid_key";
        const message = isKey ? (issue.issues[0]?.message ?? issue.message) : issue.message;
        this.fail(issue.path, message, isKey ? "key" : "value");
      }
    }
    this.problems.sort((a, b) => a.line - b.line || a.column - b.column);
    return undefined;
  }

  /** Notes a problem at a path of the content. */
  fail(path: Path, message: string, side: "key" | "value" = "value"): void {
    const [start, end] = this.#rangeOf(path, side);
    const name = path
      .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part).slice(0, 64)}`))
      .join("")
      .replace(/^\./, "");
    this.#add(start, end, name === "" ? `the file ${message}` : `${name} ${message}`);
  }

  #add(start: number, end: number, message: string): void {
    const { line, col } =
      this.#counter.lineStarts.length > 0 ? this.#counter.linePos(start) : { line: 0, col: 0 };
    const clean = withoutSecrets(message.replaceAll("\n", " "));
    if (this.problems.some((known) => known.line === line && known.column === col && known.message === clean))
      return;
    const excerpt = line === 0 ? "" : excerptOf(this.#lines, line, col, Math.max(1, end - start));
    this.problems.push({ file: this.name, line, column: col, message: clean, excerpt });
  }

  /** Where the value at the path stands or, where it is missing, the nearest thing around it. */
  #rangeOf(path: Path, side: "key" | "value"): readonly [number, number] {
    let node = this.#document?.contents as Node | null | undefined;
    let range = rangeOf(node) ?? [0, 0];
    for (const [p, part] of path.entries()) {
      const here = isAlias(node) && this.#document ? node.resolve(this.#document) : node;
      const isLast = p === path.length - 1;
      if (isMap(here)) {
        const pair = here.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
        if (!pair) return rangeOf(here.items[0]?.key as Node) ?? range;
        const keyRange = rangeOf(pair.key as Node) ?? range;
        if (isLast && side === "key") return keyRange;
        node = pair.value as Node | null;
        range = rangeOf(node) ?? keyRange;
        if (range[0] === range[1]) range = keyRange;
      } else if (isSeq(here)) {
        node = here.items[Number(part)] as Node | undefined;
        range = rangeOf(node) ?? range;
      } else return range;
    }
    // A mapping or list is too long to underline: its beginning is shown.
    return isMap(node) || isSeq(node) ? [range[0], range[0] + 1] : range;
  }
}

function rangeOf(node: Node | null | undefined): readonly [number, number] | undefined {
  return node?.range ? [node.range[0], node.range[1]] : undefined;
}

type Issue = z.core.$ZodIssue & { keys?: string[]; errors?: Issue[][] };

/** A union's issue as those of the one branch that was meant: the only one that looked inside the value. */
function leaves(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union" || !issue.errors) return [issue];
  const inside = issue.errors.filter((branch) =>
    branch.some(({ path, code }) => path.length > 0 || code === "unrecognized_keys" || code === "custom"),
  );
  const [meant] = inside;
  if (inside.length !== 1 || !meant) return [issue];
  return meant.map((each) => ({ ...each, path: [...issue.path, ...each.path] })).flatMap(leaves);
}
