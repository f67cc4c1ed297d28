// @ts-check
// A process that holds one limiter with its keys and tells what that weighs, then ends.
import { holders } from "../contenders/heap.mjs";
import { keysOf } from "./traffic.mjs";

const [id = "", keyCount, requests] = process.argv.slice(2);
const holder = holders[id];
if (holder === undefined) throw new Error(`no holder ${id}`);

await holder.hold(keysOf(100), 2); // what is compiled and allocated once is not counted
const keys = keysOf(Number(keyCount));
const before = await used();
const held = await holder.hold(keys, Number(requests));
const bytes = (await used()) - before;
process.send?.(bytes, () => process.exit(held && keys.length > 0 ? 0 : 1));

async function used() {
  for (let n = 0; n < 3; n++) {
    globalThis.gc?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage(); // external includes array buffers
  return heapUsed + external;
}
