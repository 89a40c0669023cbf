import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where this machine's groups of processes are, and what their limit is called; undefined: there is none. */
const GROUPS = [
  { root: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes" },
  { root: "/sys/fs/cgroup", limit: "memory.max" },
].find(({ root, limit }) => existsSync(join(root, limit)) || existsSync(join(root, "cgroup.controllers")));

/** A group of processes that may have so much memory together. */
export interface MemoryGroup extends Disposable {
  /** Moves a process into the group. What it has already is counted where it was. */
  readonly add: (pid: number) => void;
  /** A command before another one, so that this starts within the group. */
  readonly within: readonly string[];
  /** The kernel has killed one of them for its memory. */
  readonly killed: () => boolean;
}

/** Null: this machine has no such groups, or we may not make one. */
export function memoryGroup(name: string, bytes: number): MemoryGroup | null {
  if (GROUPS === undefined) return null;
  const group = join(GROUPS.root, `setpointd-test-${name}`);
  const processes = join(group, "cgroup.procs");
  try {
    mkdirSync(group);
    writeFileSync(join(group, GROUPS.limit), String(bytes));
  } catch {
    if (existsSync(group)) rmdirSync(group);
    return null;
  }
  return {
    add: (pid) => writeFileSync(processes, String(pid)),
    within: ["sh", "-c", `echo $$ > ${processes}; exec "$@"`, "sh"],
    killed: () => /oom_kill [1-9]/.test(readFileSync(join(group, events(group)), "utf8")),
    [Symbol.dispose]: () => rmdirSync(group),
  };
}

const events = (group: string): string =>
  existsSync(join(group, "memory.events")) ? "memory.events" : "memory.oom_control";
