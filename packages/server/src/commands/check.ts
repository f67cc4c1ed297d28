import { loadConfiguration } from "../config/load.js";

/** Prints what the files have, or throws all that is wrong with them. */
export function check(files: readonly string[]): void {
  const { limiters, domains } = loadConfiguration(files);
  const parts = [
    ...(limiters.length > 0 ? [`limiters ${limiters.map(({ name }) => name).join(", ")}`] : []),
    ...(domains.length > 0 ? [`domains ${domains.map(({ domain }) => domain).join(", ")}`] : []),
  ];
  console.log(`ok: ${parts.join("; ") || "no limits"}`);
}
