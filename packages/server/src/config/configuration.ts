// What the files say, once they are known to be right.
import type { Rule } from "sluice";
import type { Unit } from "./envoySchema.js";
import type { LimitsFile } from "./schema.js";

export type Policy = "open" | "closed" | "local";

export interface Outage {
  readonly policy: Policy;
  readonly deadlineMs: number;
  /** Among how many servers a local share is divided. */
  readonly instances: number;
}

/** A local tier before Redis: refusals are remembered and, with leases, permits of hot keys spent here. */
export interface Tiers {
  readonly leases: boolean;
  readonly staleMs: number;
}

export interface LimiterConfig {
  readonly name: string;
  readonly description?: string;
  /** Those that can refuse, and those that are only in trial. */
  readonly rules: readonly Rule[];
  readonly shadowRules: readonly Rule[];
  readonly key?: string | Readonly<Record<string, string>>;
  readonly partition?: string;
  readonly outage: Outage;
  readonly tiers?: Tiers;
}

/** One level of a domain's descriptors. */
export interface DescriptorNode {
  readonly key: string;
  /** Undefined: any value. */
  readonly value: string | undefined;
  readonly limit: DescriptorLimit | undefined;
  /** Decided apart and never refused; a quota's own status tells that it is over, a shadow's does not. */
  readonly trial: "shadow" | "quota" | undefined;
  /** All values of the wildcard share one count. */
  readonly shared: boolean;
  readonly children: readonly DescriptorNode[];
}

export interface DescriptorLimit {
  readonly unlimited: boolean;
  readonly requestsPerUnit: number;
  readonly unit: Unit;
  readonly name: string;
  readonly replaces: readonly string[];
  /** Undefined where nothing is counted: unlimited, or a limit of 0. */
  readonly rule: Rule | undefined;
}

export interface DomainConfig {
  readonly domain: string;
  readonly nodes: readonly DescriptorNode[];
  readonly outage: Outage;
}

/** What stands beside the limits in a file: where to listen, which store, who may ask. */
export type Settings = Omit<LimitsFile, "limiters">;

export interface Configuration {
  readonly settings: Settings;
  readonly limiters: readonly LimiterConfig[];
  readonly domains: readonly DomainConfig[];
}
