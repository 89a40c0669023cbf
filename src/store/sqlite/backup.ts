import { chmodSync, existsSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";

import type { Instant } from "../../domain/units.ts";
import { isFault, damaged, type Fault } from "../fault.ts";
import { DATABASE, copyOwn, syncDirectory, syncFile } from "../files.ts";
import { openDatabase, type Place } from "./openDatabase.ts";
import { verifyAll } from "./verify.ts";

/**
 * Copies the stored files while the database file stays unchanged (`Disk.beginCopy`). The log may have grown
 * or end within a commit; opening the copy drops that end. Throws file system errors.
 */
export function copyFiles(from: string, to: string): void {
  // The log is copied last: it holds all commits since the database file was frozen.
  for (const file of [DATABASE, `${DATABASE}-wal`]) {
    if (existsSync(join(from, file))) copyOwn(join(from, file), join(to, file));
  }
}

/** Size of a copy. */
export interface Copied {
  readonly rows: number;
  readonly events: number;
}

/** Opens a copy under the same checks as a start, verifies the whole record, and merges it into one file. */
export function settleCopy(place: Place, now: Instant): Copied | Fault {
  const opened = openDatabase(place, now);
  if (isFault(opened)) return opened;
  const { connection, storedState } = opened;
  const verified = verifyAll(connection, place.siteKey);
  connection.database.close();
  if (!verified.ok) return damaged(`audit record: ${verified.reason}`);
  return { rows: verified.rows, events: storedState.events.length };
}

/** Moves the file of a settled copy to its place, whole or not at all. Throws file system errors. */
export function placeCopy(directory: string, path: string): void {
  const file = join(directory, DATABASE);
  chmodSync(file, 0o600);
  syncFile(file);
  renameSync(file, path);
  syncDirectory(dirname(path));
}
