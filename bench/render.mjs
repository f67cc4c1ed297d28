// @ts-check
// `node bench/render.mjs`: writes the pages and plots again from the kept JSON, without measuring anything.
import { writeAccuracy, writeBenchmarks } from "./lib/pages.mjs";

writeBenchmarks();
writeAccuracy();
