import { existsSync, linkSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

import { type Instant, iso } from "../../domain/units.ts";
import { type SealedHead, authenticate } from "../chain.ts";
import { refused, type Fault, damaged } from "../fault.ts";
import { DATABASE, HEAD_FILE, leaveToOwner, readOwn, replaceFile, syncDirectory } from "../files.ts";
import { faultOf, isBusy } from "./fault.ts";

/**
 * Allows one daemon per state directory. The database has an exclusive lock too, but moving damaged state
 * away would move that lock as well: of two simultaneous starts, the later one would move the fresh state.
 * The lock is an empty SQLite file, because SQLite releases it however the process ends.
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

/** `isSealed`: written with the site key, so it can be compared with the database. Earlier versions wrote a bare number. */
export interface StoredEpoch {
  readonly epoch: number;
  readonly isSealed: boolean;
}

const text = (siteKey: Buffer, epoch: number): string =>
  `${epoch} ${authenticate(siteKey, "epoch", String(epoch))}\n`;

/** Null: missing, as beside a restored backup, or unreadable. */
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
 * The epoch of this run: above every known epoch, whatever the clock shows. It is at least the Unix time in
 * seconds, so it also rises if the file is lost. `seen`: epochs in the head and in stored commands.
 */
export const nextEpoch = (stored: StoredEpoch | null, now: Instant, seen: readonly number[]): number =>
  Math.max(Math.floor(now / 1000), ...[stored?.epoch ?? 0, ...seen].map((epoch) => epoch + 1));

/** Throws file system errors. */
export const storeEpoch = (directory: string, siteKey: Buffer, epoch: number): void =>
  replaceFile(join(directory, EPOCH_FILE), text(siteKey, epoch));

/**
 * Compares the head of the database with the epoch file. Each start writes the head first and the file
 * second, so the file is never ahead. Null: they fit. `head` null: the database has none.
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
/** The database moves first: files left behind by an interruption belong to no database and start nothing. */
const FILES = [DATABASE, LOG, `${DATABASE}-shm`, `${DATABASE}-journal`, HEAD_FILE];

const KEPT_LOG = `${LOG}.kept`;

/** Keeps a log without its database, which SQLite would overwrite. Throws file system errors. */
export function keepOrphanedLog(directory: string): void {
  if (existsSync(join(directory, LOG))) renameSync(join(directory, LOG), join(directory, KEPT_LOG));
}

/** Gives the write-ahead log a second name, which remains after SQLite deletes the first. */
export function keepLog(directory: string): void {
  if (!existsSync(join(directory, LOG))) return;
  try {
    linkSync(join(directory, LOG), join(directory, KEPT_LOG));
  } catch {
    // The copy exists already, or the file system has no hard links: then only the database can be kept.
  }
}

/**
 * Moves a damaged state into a directory of its own for inspection. The site key and the epoch stay. Returns
 * the directory. Throws file system errors.
 */
export function setAside(directory: string, now: Instant): string {
  const wanted = join(directory, `corrupt-${iso(now).replaceAll(":", "")}`);
  let target = wanted;
  // Two damaged states must not share a directory, even if the clock stands still at every start.
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
