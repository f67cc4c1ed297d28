// @ts-check
// `node bench/render.mjs`: writes the pages and plots again from the kept JSON, without measuring anything.
import { writePages } from "./lib/pages.mjs";

writePages();
