import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Bytes alive in the heap of this process once all garbage is gone. */
export function aliveInHeap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}
