import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { loadConfiguration } from "./config/load.js";
import { Metrics } from "./metrics.js";

const deploy = (path: string) => fileURLToPath(new URL(`../../../deploy/${path}`, import.meta.url));

test("the dashboard asks for metrics that there are, with labels that they have, and for all of them", () => {
  const { registry } = new Metrics();
  const known = registry.getMetricsAsArray().filter(({ name }) => name.startsWith("sluice_"));
  const dashboard = readFileSync(deploy("grafana/sluice.json"), "utf8");
  const asked = new Set(dashboard.match(/\bsluice_\w+/g)?.map((name) => name.replace(/_bucket$/, "")));
  expect([...asked].sort()).toEqual(known.map(({ name }) => name).sort());
  const labels = new Set([...known.flatMap((metric) => labelsOf(metric)), "le"]);
  const used = [...dashboard.matchAll(/by \(([^)]*)\)|[{,] ?(\w+)=/g)].flatMap(
    ([, by, one]) => (by ?? one)?.split(", ") ?? [],
  );
  expect(used.filter((label) => !labels.has(label))).toEqual([]);
});

function labelsOf(metric: object): readonly string[] {
  return "labelNames" in metric ? (metric.labelNames as string[]) : [];
}

test("the limits of the compose file are right", () => {
  const { limiters, domains } = loadConfiguration([deploy("limits")]);
  expect([limiters[0]?.name, domains[0]?.domain]).toEqual(["api", "edge"]);
});
