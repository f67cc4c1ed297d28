// Finds the code blocks of a Markdown page and turns each into a module that can be compiled and run.
// The rules a page's author goes by are at the top of docs/docs.test.ts.

export interface Block {
  /** The page's path from the repository's root. */
  readonly page: string;
  /** The line of the page that holds the opening fence. */
  readonly line: number;
  readonly language: "ts" | "js";
  /** False for blocks that are compiled only. */
  readonly runs: boolean;
  /** The module's lines, each at the line number it has in the page. */
  readonly lines: string[];
  /** The lines that promise a value. */
  readonly promises: number[];
}

const SCRIPT_WORDS = /^(?:[cm]?[tj]sx?|typescript|javascript)$/i;
const SCRIPT_FENCE = /^[ \t>]*(?:`{3,}|~{3,})[ \t]*(?:[cm]?[tj]sx?|typescript|javascript)(?![\w-])/gim;

/** How many fences of the page claim to be code, counted without regard to how the page is structured. */
export function countFences(markdown: string): number {
  return markdown.match(SCRIPT_FENCE)?.length ?? 0;
}

/** The page's blocks, those that continue another one merged into it, and how many fences they came from. */
export function blocksOf(page: string, markdown: string): { blocks: Block[]; fences: number } {
  const blocks: Block[] = [];
  let fences = 0;
  const text = markdown.split(/\r?\n/);
  for (let at = 0; at < text.length; at += 1) {
    const [, indent = "", fence, info = ""] = text[at]?.match(/^([ \t]*)(`{3,}|~{3,})[ \t]*(.*)$/) ?? [];
    if (fence === undefined) continue;
    const isEnd = new RegExp(`^[ \\t]*${fence[0]}{${fence.length},}[ \\t]*$`);
    const end = text.findIndex((line, index) => index > at && isEnd.test(line));
    const line = at + 1;
    if (end === -1) throw new Error(`${page}:${line}: this fence is never closed`);
    const body = text.slice(line, end).map((code) => unindent(code, indent));
    at = end;

    const opening = readInfo(info, `${page}:${line}`);
    if (opening === undefined) continue;
    fences += 1;
    let block: Block = { page, line, ...opening, lines: ["export {};"], promises: [] };
    if (body[0]?.trim() === "// continues") {
      const last = blocks.at(-1);
      if (last === undefined) throw new Error(`${page}:${line}: there is no block above to continue`);
      if (last.language !== block.language || last.runs !== block.runs) {
        throw new Error(`${page}:${line}: a block continues one of the same language, both run or neither`);
      }
      block = last;
    } else {
      blocks.push(block);
    }
    while (block.lines.length < line) block.lines.push("");
    for (const code of body) append(block, code);
  }
  return { blocks, fences };
}

function readInfo(info: string, where: string): Pick<Block, "language" | "runs"> | undefined {
  const [language = "", option, ...reason] = info.trim().split(/\s+/);
  if (!SCRIPT_WORDS.test(language)) return undefined;
  if (language !== "ts" && language !== "js") throw new Error(`${where}: write ts or js, not ${language}`);
  if (option === undefined) return { language, runs: true };
  if (option !== "no-run")
    throw new Error(`${where}: "${option}" is not an option; there is no-run <reason>`);
  if (reason.length === 0) throw new Error(`${where}: no-run needs a reason after it`);
  return { language, runs: false };
}

/** Adds a line of the page, with a call that checks the value where the line promises one. */
function append(block: Block, code: string): void {
  const line = block.lines.length + 1;
  const [, indent = "", statement = "", promised = ""] = code.match(/^(\s*)(.*?)\s*\/\/ ->(.*)$/) ?? [];
  if (!code.includes("// ->")) {
    block.lines.push(code);
    return;
  }
  const where = `${block.page}:${line}`;
  if (!block.runs) throw new Error(`${where}: a block that is not run cannot promise a value`);
  if (statement === "") throw new Error(`${where}: "// ->" stands behind an expression, on the same line`);
  if (/^[.…\s]*$/.test(promised)) throw new Error(`${where}: this promises nothing`);

  const bare = statement.replace(/;$/, "");
  const name = bare.match(/^(?:const|let) ([\w$]+)\b.*?=/)?.[1];
  const args = `${line}, ${JSON.stringify(promised.trim())}`;
  const printed = bare.match(/^console\.log\((.*)\)$/)?.[1];
  let checked = `__shows(${args}, (${bare}));`;
  if (printed !== undefined) checked = `__shows(${args}, ${printed});`;
  if (name !== undefined) checked = `${bare}; __shows(${args}, ${name});`;
  block.promises.push(line);
  block.lines.push(indent + checked);
}

function unindent(line: string, indent: string): string {
  return line.startsWith(indent) ? line.slice(indent.length) : line.trimStart();
}
