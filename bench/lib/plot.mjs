// @ts-check
// Plots as SVG, drawn from a section's own table. They follow the reader's light or dark scheme.
import { bars } from "./plot-bars.mjs";
import { lines } from "./plot-lines.mjs";

/**
 * @typedef {import("./report.mjs").Section} Section
 * @typedef {{ at: number, text: string }} Mark a value to compare with, such as a limit
 * @typedef {{ kind: "bars", column: string, caption: string, scale: "linear" | "log", mark?: Mark, neutral?: boolean }} Bars `neutral`: shorter is not simply better
 * @typedef {{ kind: "lines", caption: string, only?: string[], linearX?: boolean, linearY?: boolean, steps?: boolean, mark?: Mark }} Lines `steps`: a value holds until the next
 * @typedef {Bars | Lines} Plot
 */

/**
 * @param {Section} section
 * @returns {string | undefined} undefined where the section has no plot
 */
export function plotOf(section) {
  if (section.plot === undefined) return undefined;
  return section.plot.kind === "bars" ? bars(section, section.plot) : lines(section, section.plot);
}
