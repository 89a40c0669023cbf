import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { leaveToOwner } from "./files.ts";
import { faultOf, isBusy, refused, type Fault } from "./fault.ts";

/**
 * One daemon per state directory (F09). The database has its own exclusive lock, but that one goes with the file
 * when damaged state is moved away: of two that start on it at once, the later would move the fresh one.
 * An empty SQLite file, because its lock ends with the process however that ends.
 */
export function takeLock(directory: string): DatabaseSync | Fault {
  const path = join(directory, "lock");
  try {
    const lock = new DatabaseSync(path);
    leaveToOwner(path);
    lock.exec("PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE");
    return lock;
  } catch (error) {
    const taken = `another setpointd is using this state (${directory}): stop it first`;
    return refused(isBusy(error) ? taken : `${path}: ${faultOf(error).reason}`);
  }
}
