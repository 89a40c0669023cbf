import { chmodSync, existsSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Instant } from "../../domain/units.ts";
import { openDatabase, isFault, type Place } from "./openDatabase.ts";
import { DATABASE } from "./connection.ts";
import { damaged, type Fault } from "./fault.ts";
import { copyOwn, syncDirectory, syncFile } from "./files.ts";
import { verifyAll } from "./verify.ts";

/**
 * The stored files as they are, while their owner keeps them still (`Disk.keepStill`): the log may have grown or end
 * in the middle of a commit, which whoever opens the copy leaves out. Throws file system errors.
 */
export function copyFiles(from: string, to: string): void {
  // The log last: what it has beyond the database is all that came since.
  for (const file of [DATABASE, `${DATABASE}-wal`]) {
    if (existsSync(join(from, file))) copyOwn(join(from, file), join(to, file));
  }
}

/** How much a copy holds. */
export interface Copied {
  readonly rows: number;
  readonly events: number;
}

/** Believes a copy as little as the daemon believes its state at a start, reads the whole record, and makes it one file. */
export function settleCopy(place: Place, now: Instant): Copied | Fault {
  const booted = openDatabase(place, now);
  if (isFault(booted)) return booted;
  const { connection, remembered } = booted;
  const verified = verifyAll(connection, place.siteKey);
  connection.database.close();
  if (!verified.ok) return damaged(`audit record: ${verified.reason}`);
  return { rows: verified.rows, events: remembered.events.length };
}

/** Puts the one file of a settled copy in its place, whole or not at all. Throws file system errors. */
export function placeCopy(directory: string, path: string): void {
  const file = join(directory, DATABASE);
  chmodSync(file, 0o600);
  syncFile(file);
  renameSync(file, path);
  syncDirectory(dirname(path));
}
