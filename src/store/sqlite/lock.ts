import { existsSync, linkSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { type Instant, iso } from "../../domain/units.ts";
import { type SealedHead, HEAD_FILE } from "./chain.ts";
import { DATABASE } from "./connection.ts";
import { faultOf, isBusy, refused, type Fault, damaged } from "./fault.ts";
import { leaveToOwner, readOwn, replaceFile, syncDirectory } from "./files.ts";
import { authenticate } from "./keys.ts";

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

/** Name in the state directory. */
export const EPOCH_FILE = "epoch";

/** `isSealed`: written with the site key, so that it can be held against the database. Earlier versions wrote a bare number. */
export interface StoredEpoch {
  readonly epoch: number;
  readonly isSealed: boolean;
}

const text = (siteKey: Buffer, epoch: number): string =>
  `${epoch} ${authenticate(siteKey, "epoch", String(epoch))}\n`;

/** Null: there is none, as beside a copy that was put back, or it cannot be read. */
export function storedEpoch(directory: string, siteKey: Buffer): StoredEpoch | null {
  let found: string;
  try {
    found = readOwn(join(directory, EPOCH_FILE)).toString("latin1");
  } catch {
    return null;
  }
  const number = /^\d{1,15}(?=\s)/.exec(found)?.[0];
  if (number === undefined) return null;
  const epoch = Number(number);
  if (found === text(siteKey, epoch)) return { epoch, isSealed: true };
  return found.trim() === number ? { epoch, isSealed: false } : null;
}

/**
 * The epoch of this run: above every one that is known whatever the clock says, and the Unix time in seconds where that
 * is more, so that it also rises when the file is lost (DESIGN 5.7). `seen`: those in the head and in stored commands.
 */
export const nextEpoch = (stored: StoredEpoch | null, now: Instant, seen: readonly number[]): number =>
  Math.max(Math.floor(now / 1000), ...[stored?.epoch ?? 0, ...seen].map((epoch) => epoch + 1));

/** Throws file system errors. */
export const storeEpoch = (directory: string, siteKey: Buffer, epoch: number): void =>
  replaceFile(join(directory, EPOCH_FILE), text(siteKey, epoch));

/**
 * Holds the head of the database against the epoch file. Each start writes the head first and the file second, so that
 * the file is never ahead. Null: they fit. `head` null: the database has none.
 */
export function epochFault(stored: StoredEpoch | null, head: SealedHead | null): Fault | null {
  if (stored === null || !stored.isSealed) return null;
  const { epoch } = stored;
  if (head === null)
    return damaged(`the record was emptied or taken away: run ${epoch} kept one, and its end is not here`);
  if (head.epoch !== null && head.epoch >= epoch) return null;
  const since = head.epoch === null ? "an earlier version" : `run ${head.epoch}`;
  return damaged(
    `the database is an older one, last written by ${since}, but run ${epoch} came after it: to restore a copy, put it into an empty folder`,
  );
}

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
