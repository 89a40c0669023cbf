import { join } from "node:path";
import type { Instant } from "../core/units.ts";
import { authenticate } from "./authentic.ts";
import { damaged, type Fault } from "./fault.ts";
import { readOwn, replaceFile } from "./files.ts";
import type { SealedHead } from "./head.ts";

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
