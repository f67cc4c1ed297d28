// `node packages/server/scripts/schemas.mjs`, then `npm run fix`: writes schema/*.json out of the built server.
// A test tells when they are stale.
import { writeFileSync } from "node:fs";
import { schemaFiles } from "../dist/schemas.js";

for (const [name, content] of Object.entries(await schemaFiles())) {
  writeFileSync(new URL(`../schema/${name}`, import.meta.url), content);
}
