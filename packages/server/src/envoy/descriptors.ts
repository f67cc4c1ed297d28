// Which limit a descriptor falls under, by the rules of envoyproxy/ratelimit: at each level the exact
// key and value, else a wildcard in the order of the file, else the key alone; and no way back up.
import { createHash } from "node:crypto";
import { type StoredRule, storedRules } from "sluice";
import type { DescriptorLimit, DescriptorNode } from "../config/configuration.js";
import type { Entry } from "./messages.js";
import { wildcard } from "./wildcard.js";

/** A limit of the file with the place its counts live at. */
export interface PlacedLimit {
  readonly limit: DescriptorLimit;
  /** Undefined where nothing is counted: unlimited, or a limit of 0. */
  readonly rule: StoredRule | undefined;
  readonly trial: "shadow" | "quota" | undefined;
  /** For metrics: the limit's own name, or its place in the file. Never a value that a client sent. */
  readonly label: string;
}

interface Placed {
  readonly node: DescriptorNode;
  readonly limit: PlacedLimit | undefined;
  readonly below: Level | undefined;
}

interface Level {
  readonly exact: ReadonlyMap<string, Placed>;
  readonly wildcards: ReadonlyMap<string, readonly { matches: (value: string) => boolean; placed: Placed }[]>;
  readonly bare: ReadonlyMap<string, Placed>;
}

export interface Match {
  readonly limit: PlacedLimit;
  /** The descriptor's entries as one text, which no other entries give. */
  readonly key: string;
}

/** The descriptors of a domain, ready to be matched. */
export class DescriptorTree {
  readonly #root: Level;

  constructor(domain: string, nodes: readonly DescriptorNode[]) {
    this.#root = levelOf(domain, nodes, []);
  }

  /** The limit that the entries fall under; undefined where the file has none for them. */
  match(entries: readonly Entry[]): Match | undefined {
    let level: Level | undefined = this.#root;
    let key = "";
    for (let e = 0; e < entries.length; e++) {
      const entry = entries[e] as Entry;
      const placed: Placed | undefined = level && find(level, entry);
      if (placed === undefined) return undefined;
      key += `${e > 0 ? "&" : ""}${entryKey(entry.key, placed.node.shared ? (placed.node.value as string) : entry.value)}`;
      if (e === entries.length - 1) return placed.limit && { limit: placed.limit, key };
      level = placed.below;
    }
    return undefined;
  }
}

/** One text per list of entries: what joins them is escaped inside them, so (a_b, c) is not (a, b_c). */
export function keyOfEntries(entries: readonly Entry[]): string {
  return entries.map(({ key, value }) => entryKey(key, value)).join("&");
}

function entryKey(key: string, value: string): string {
  return `${escapePart(key)}=${escapePart(value)}`;
}

function escapePart(text: string): string {
  return /[%&=]/.test(text) ? text.replace(/[%&=]/g, encodeURIComponent) : text;
}

/**
 * The name that a limit's counts live under: the same as long as its place in the file is the same, so
 * that a reload keeps them, and another for every other place.
 */
export function limiterName(domain: string, place: readonly unknown[]): string {
  const digest = createHash("sha256")
    .update(JSON.stringify([domain, ...place]))
    .digest("base64url");
  return `envoy:${digest.slice(0, 22)}`;
}

function find({ exact, wildcards, bare }: Level, { key, value }: Entry): Placed | undefined {
  const found = exact.get(JSON.stringify([key, value]));
  if (found) return found;
  return wildcards.get(key)?.find(({ matches }) => matches(value))?.placed ?? bare.get(key);
}

function levelOf(domain: string, nodes: readonly DescriptorNode[], place: readonly unknown[]): Level {
  const exact = new Map<string, Placed>();
  const wildcards = new Map<string, { matches: (value: string) => boolean; placed: Placed }[]>();
  const bare = new Map<string, Placed>();
  for (const node of nodes) {
    const placed = placeNode(domain, node, [...place, [node.key, node.value ?? null]]);
    if (node.value === undefined) bare.set(node.key, placed);
    else if (!node.value.includes("*")) exact.set(JSON.stringify([node.key, node.value]), placed);
    else {
      const known = wildcards.get(node.key) ?? [];
      wildcards.set(node.key, [...known, { matches: wildcard(node.value), placed }]);
    }
  }
  return { exact, wildcards, bare };
}

function placeNode(domain: string, node: DescriptorNode, place: readonly unknown[]): Placed {
  const { limit, trial, children } = node;
  const below = children.length > 0 ? levelOf(domain, children, place) : undefined;
  if (limit === undefined) return { node, limit: undefined, below };
  const rule = limit.rule && storedRules(limiterName(domain, place), limit.rule)[0];
  const label = limit.name || place.map(labelOf).join("/");
  return { node, limit: { limit, rule, trial, label }, below };
}

function labelOf(part: unknown): string {
  const [key, value] = part as [string, string | null];
  return value === null ? key : `${key}=${value}`;
}
