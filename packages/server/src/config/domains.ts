import type { AlgorithmName } from "sluice";
import type { DescriptorLimit, DescriptorNode, DomainConfig, Outage } from "./configuration.js";
import { type EnvoyDescriptor, type EnvoyFile, type EnvoyLimit, writtenRule } from "./envoySchema.js";
import { buildRule } from "./rules.js";

/** The domain of an envoyproxy/ratelimit file that the schema has let through. */
export function buildDomain({ domain, algorithm, descriptors }: EnvoyFile, outage: Outage): DomainConfig {
  return { domain, nodes: buildNodes(descriptors ?? [], algorithm ?? "slidingLog"), outage };
}

function buildNodes(inputs: readonly EnvoyDescriptor[], algorithm: AlgorithmName): DescriptorNode[] {
  return inputs.map((input) => ({
    key: input.key,
    value: input.value === "" ? undefined : input.value,
    limit: input.rate_limit && buildLimit(input.rate_limit, algorithm),
    trial: input.shadow_mode ? "shadow" : input.quota_mode ? "quota" : undefined,
    shared: input.share_threshold === true,
    children: buildNodes(input.descriptors ?? [], algorithm),
  }));
}

function buildLimit(input: EnvoyLimit, algorithm: AlgorithmName): DescriptorLimit {
  const { requests_per_unit: requestsPerUnit = 0, unit = "second", unlimited = false } = input;
  return {
    unlimited,
    requestsPerUnit,
    unit,
    name: input.name ?? "",
    replaces: (input.replaces ?? []).map(({ name }) => name),
    rule: unlimited || requestsPerUnit === 0 ? undefined : buildRule(writtenRule(input, algorithm)),
  };
}
