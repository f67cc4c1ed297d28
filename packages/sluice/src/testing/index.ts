export { type ConformanceOptions, conformance } from "./conformance.js";
