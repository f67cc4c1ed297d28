// @ts-check
// `npm run build`: installs what is missing and compiles every package.
import { build, install } from "./setup.mjs";

install();
build();
