import { existsSync, linkSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { iso, type Instant } from "../core/units.ts";
import { DATABASE } from "./database.ts";
import { syncDirectory } from "./files.ts";
import { HEAD_FILE } from "./head.ts";

const LOG = `${DATABASE}-wal`;
/** The database goes first: what would be left behind then belongs to no database, and starts nothing. */
const FILES = [DATABASE, LOG, `${DATABASE}-shm`, `${DATABASE}-journal`, HEAD_FILE];

const KEPT_LOG = `${LOG}.kept`;

/** A log without its database, which SQLite would write over. Throws file system errors. */
export function keepOrphanedLog(directory: string): void {
  if (existsSync(join(directory, LOG))) renameSync(join(directory, LOG), join(directory, KEPT_LOG));
}

/** A second name for the write-ahead log, which outlives that the database deletes the first. */
export function keepLog(directory: string): void {
  if (!existsSync(join(directory, LOG))) return;
  try {
    linkSync(join(directory, LOG), join(directory, KEPT_LOG));
  } catch {
    // One is kept already, or the file system knows no second names: then the database alone is what can be kept.
  }
}

/**
 * Moves a damaged state away whole, for those who want to know what happened; the site key and the epoch stay
 * (DESIGN 5.7). Returns the directory that it is in now. Throws file system errors.
 */
export function setAside(directory: string, now: Instant): string {
  const wanted = join(directory, `corrupt-${iso(now).replaceAll(":", "")}`);
  let target = wanted;
  // A clock that stands still at every start must not make two damaged states one.
  for (let n = 2; existsSync(target); n += 1) target = `${wanted}-${n}`;
  mkdirSync(target, { mode: 0o700 });
  for (const file of FILES) {
    const from = join(directory, file);
    if (existsSync(from)) renameSync(from, join(target, file));
  }
  if (existsSync(join(directory, KEPT_LOG))) renameSync(join(directory, KEPT_LOG), join(target, LOG));
  syncDirectory(target);
  syncDirectory(directory);
  return target;
}
