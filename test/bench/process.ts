import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** proc(5): times are counted in these. */
const TICKS_PER_SECOND = 100;

/** Milliseconds of CPU that a process has used since its start, kernel included, all threads; in steps of 10. */
export function cpuOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The command's name, in brackets, may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [user, kernel] = [Number(fields[11]), Number(fields[12])];
  return ((user + kernel) * 1000) / TICKS_PER_SECOND;
}

/** Bytes of a process that are in memory now. */
export function residentOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
  return Number(kilobytes) * 1024;
}

/** Resolves once a process has used next to no CPU for half a second: what it does in the background is done. */
export async function quiet(pid: number): Promise<void> {
  for (let before = cpuOf(pid), calm = 0; calm < 2;) {
    await sleep(250);
    const now = cpuOf(pid);
    calm = now - before <= 20 ? calm + 1 : 0;
    before = now;
  }
}
