// Compiles blocks with one start of the compiler, and runs each in a process of its own.
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Block } from "./blocks.js";

const here = dirname(fileURLToPath(import.meta.url));
export const root = dirname(dirname(here));
const TIMEOUT_MS = 30_000;

/** Compiled blocks: the compiler's complaints, by block, and those that belong to none. */
export interface Compiled {
  readonly errors: ReadonlyMap<Block, readonly string[]>;
  readonly otherErrors: readonly string[];
}

/** Type-checks and emits all blocks together, in a folder inside the repository that is emptied first. */
export function compile(blocks: readonly Block[], folder: string): Compiled {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const block of blocks) writeFileSync(join(folder, fileOf(block)), `${block.lines.join("\n")}\n`);
  const globals = "declare function __shows(line: number, promised: string, ...values: unknown[]): void;\n";
  writeFileSync(join(folder, "globals.d.ts"), globals);
  const compilerOptions = {
    allowJs: true,
    declaration: false,
    declarationMap: false,
    outDir: "out",
    rootDir: ".",
  };
  const config = { extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["*"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));

  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const { stdout, stderr, status } = spawnSync(process.execPath, [tsc, "-p", ".", "--pretty", "false"], {
    cwd: folder,
    encoding: "utf8",
  });
  const errors = new Map<Block, string[]>(blocks.map((block) => [block, []]));
  const byFile = new Map(blocks.map((block) => [fileOf(block), block]));
  const otherErrors: string[] = [];
  let current = otherErrors;
  for (const text of `${stdout}${stderr}`.split("\n").filter((text) => text.trim() !== "")) {
    const [, file = "", line, column, message] = text.match(/^(\S+)\((\d+),(\d+)\): (.*)$/) ?? [];
    const block = byFile.get(basename(file));
    if (block !== undefined) {
      current = errors.get(block) ?? otherErrors;
      const hint = block.promises.includes(Number(line))
        ? ` ("// ->" needs a whole expression on its line)`
        : "";
      current.push(`${block.page}:${line}:${column}: ${message}${hint}`);
    } else {
      if (!/^\s/.test(text)) current = otherErrors; // an indented line explains the one above
      current.push(text);
    }
  }
  if (status !== 0 && stdout + stderr === "") otherErrors.push(`tsc ended with exit code ${status}`);
  return { errors, otherErrors };
}

/**
 * Runs a compiled block to its end, with these variables in its environment. Answers what went wrong,
 * in terms of the page, or undefined.
 */
export function runBlock(
  block: Block,
  folder: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const file = join(folder, "out", fileOf(block).replace(/ts$/, "js"));
  const preload = pathToFileURL(join(here, "shows.mjs")).href;
  const { NODE_OPTIONS: _, ...env } = process.env;
  const docs = { SLUICE_DOCS_PAGE: block.page, SLUICE_DOCS_PROMISES: block.promises.join(",") };
  return new Promise((resolve) => {
    const args = ["--enable-source-maps", "--import", preload, file];
    const options = { cwd: root, env: { ...env, ...variables, ...docs }, timeout: TIMEOUT_MS };
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(undefined);
      const reason = error.killed
        ? `did not end within ${TIMEOUT_MS / 1000} s: a block closes what it opens`
        : `exit code ${error.code}`;
      const source = join(folder, fileOf(block));
      const output = `${stdout}${stderr}`.replaceAll(pathToFileURL(source).href, block.page);
      resolve(`${block.page}:${block.line}: ${reason}\n${output.replaceAll(source, block.page)}`);
    });
  });
}

function fileOf({ page, line, language }: Block): string {
  return `${page.replace(/[^\w.]+/g, "_")}_${line}.${language}`;
}
