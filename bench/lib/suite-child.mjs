// @ts-check
// A process that runs one suite: clocks, heap and compiled code are its own.
import { suites } from "../suites/index.mjs";

const [name = "", effort = "{}"] = process.argv.slice(2);
const suite = suites[name];
if (suite === undefined) throw new Error(`no suite ${name}`);

const result = await suite.run({
  ...JSON.parse(effort),
  onProgress: (share) => process.send?.({ share }),
});
process.send?.({ result }, () => process.exit(0));
