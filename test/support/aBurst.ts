import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";

/** Longest wait for all connections, ms. */
const WITHIN = 10_000;

const CONNECTS = `
  const { workerData: { port, count, shared } } = require("node:worker_threads");
  const connected = new Int32Array(shared);
  const sockets = [];
  for (let n = 0; n < count; n += 1)
    sockets.push(require("node:net").connect(port, "127.0.0.1").on("error", () => {}).on("connect", () => {
      if (Atomics.add(connected, 0, 1) + 1 === count) Atomics.notify(connected, 0);
    }));
`;

/** The cap of the kernel on connections that wait to be accepted. 0: not known. */
export function waitingAtMost(): number {
  try {
    return Number(readFileSync("/proc/sys/net/core/somaxconn", "utf8"));
  } catch {
    return 0;
  }
}

/** Connections that are made at once while this thread accepts none. */
export async function aBurst(port: number, count: number): Promise<number> {
  const shared = new SharedArrayBuffer(4);
  const connected = new Int32Array(shared);
  const worker = new Worker(CONNECTS, { eval: true, workerData: { port, count, shared } });
  const until = performance.now() + WITHIN;
  while (Atomics.load(connected, 0) === 0 && performance.now() < until) Atomics.wait(connected, 0, 0, 10);
  const latest = performance.now() + WITHIN;
  for (let seen = 0; seen < count && performance.now() < latest; seen = Atomics.load(connected, 0))
    Atomics.wait(connected, 0, seen, 10);
  const made = Atomics.load(connected, 0);
  await worker.terminate();
  return made;
}
