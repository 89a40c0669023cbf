import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { iso, type Instant } from "../core/units.ts";
import { DATABASE } from "./database.ts";
import { syncDirectory } from "./files.ts";
import { HEAD_FILE } from "./head.ts";

/** The database goes first: what would be left behind then belongs to no database, and starts nothing. */
const FILES = [DATABASE, `${DATABASE}-wal`, `${DATABASE}-shm`, `${DATABASE}-journal`, HEAD_FILE];

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
  syncDirectory(target);
  syncDirectory(directory);
  return target;
}
