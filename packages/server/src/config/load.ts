// From files to a configuration: all that is wrong with all of them is told at once.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Configuration, Settings } from "./configuration.js";
import { YamlFile } from "./document.js";
import { buildDomain } from "./domains.js";
import { type EnvoyFile, envoySchema } from "./envoySchema.js";
import { buildLimiters, outageOf } from "./limiters.js";
import { ConfigError, type Problem } from "./problem.js";
import { type LimitsFile, limitsSchema } from "./schema.js";

/** A file's name and text. */
export interface Source {
  readonly name: string;
  readonly text: string;
}

/** Reads and checks files; a folder stands for the .yaml and .yml files in it. */
export function loadConfiguration(paths: readonly string[]): Configuration {
  return parseConfiguration(readSources(paths));
}

/** The files behind the paths; one that cannot be read is a `ConfigError`. */
export function readSources(paths: readonly string[]): Source[] {
  const problems: Problem[] = [];
  const read = <T>(name: string, action: () => T): T | undefined => {
    try {
      return action();
    } catch (error) {
      const message = `cannot be read: ${(error as Error).message}`;
      problems.push({ file: name, line: 0, column: 0, message, excerpt: "" });
      return undefined;
    }
  };
  const files = paths.flatMap((path) => read(path, () => filesOf(path)) ?? []);
  const sources = files.flatMap((name) => {
    const text = read(name, () => readFileSync(name, "utf8"));
    return text === undefined ? [] : [{ name, text }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return sources;
}

function filesOf(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path).filter((name) => /\.ya?ml$/.test(name) && !name.startsWith("."));
  if (names.length === 0) throw new Error("the folder has no .yaml or .yml files");
  return names.sort().map((name) => join(path, name));
}

/** Checks sources together, or throws a `ConfigError` with all problems of all of them. */
export function parseConfiguration(sources: readonly Source[]): Configuration {
  const files = sources.map(({ name, text }) => new YamlFile(name, text));
  const limits: { file: YamlFile; content: LimitsFile }[] = [];
  const envoys: { file: YamlFile; content: EnvoyFile }[] = [];
  for (const file of files) {
    if (isEnvoy(file.content)) {
      const content = file.as(envoySchema);
      if (content) envoys.push({ file, content });
    } else {
      const content = file.as(limitsSchema);
      if (content) limits.push({ file, content });
    }
  }
  const defaults = settingsOf(limits);
  const limiters = limits.flatMap(({ content }) => buildLimiters(content, defaults));
  const domains = envoys.map(({ content }) => buildDomain(content, outageOf(defaults.outage)));
  refuseDuplicates(limits, envoys);
  const problems = files.flatMap((file) => file.problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return { settings: defaults, limiters, domains };
}

function isEnvoy(content: unknown): boolean {
  return typeof content === "object" && content !== null && ("domain" in content || "descriptors" in content);
}

/** The settings of all files together; each may stand in one of them. */
function settingsOf(files: readonly { file: YamlFile; content: LimitsFile }[]): Settings {
  const merged: Record<string, unknown> = {};
  for (const { file, content } of files) {
    const { limiters: _, ...settings } = content;
    for (const [name, value] of Object.entries(settings)) {
      if (name in merged) file.fail([name], "is set in another file already", "key");
      merged[name] = value;
    }
  }
  return merged as Settings;
}

function refuseDuplicates(
  limits: readonly { file: YamlFile; content: LimitsFile }[],
  envoys: readonly { file: YamlFile; content: EnvoyFile }[],
): void {
  const homes = new Map<string, string>();
  const claim = (file: YamlFile, what: string, path: string[], side: "key" | "value") => {
    const home = homes.get(what);
    if (home !== undefined) file.fail(path, `is a duplicate: it stands in ${home} already`, side);
    homes.set(what, file.name);
  };
  for (const { file, content } of limits) {
    for (const name of Object.keys(content.limiters ?? {})) {
      claim(file, `limiter ${name}`, ["limiters", name], "key");
    }
  }
  for (const { file, content } of envoys) claim(file, `domain ${content.domain}`, ["domain"], "value");
}
