import { codeOf } from "../../platform/text.ts";
import { type Fault, damaged, refused } from "../fault.ts";

const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const IOERR = 10;
const FULL = 13;
const CANTOPEN = 14;
/** Extended code: the file is shorter than expected. */
const SHORT_READ = 522;

/**
 * Translates an error of SQLite or of the file system into a fault; any other error is a bug and is rethrown. Our SQL
 * never changes, so an error such as a missing table counts as damage.
 */
export function faultOf(error: unknown): Fault {
  if (error instanceof Error && "syscall" in error)
    return { kind: isFull(error) ? "full" : "refused", reason: error.message };
  if (!(error instanceof Error) || !("code" in error)) throw error;
  const reason = error.message;
  // A number too large for JavaScript: we never wrote one.
  if (error.code === "ERR_OUT_OF_RANGE") return damaged(reason);
  if (error.code !== "ERR_SQLITE_ERROR" || !("errcode" in error)) throw error;
  if (error.errcode === SHORT_READ) return damaged(reason);
  switch (Number(error.errcode) & 0xff) {
    case FULL:
      return { kind: "full", reason };
    case BUSY:
    case LOCKED:
    case NOMEM:
    case IOERR:
    case CANTOPEN:
      return refused(reason);
    default:
      return damaged(reason);
  }
}

const hasCode = (error: unknown, code: number): boolean =>
  error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === code;

/** Another process holds the lock. */
export const isBusy = (error: unknown): boolean => hasCode(error, BUSY);

/** The database, its log or its index may not be opened. SQLite does not name the file. */
export const isUnopened = (error: unknown): boolean => hasCode(error, CANTOPEN);

/** The disk is full, reported by SQLite or by the file system. */
export const isFull = (error: unknown): boolean => codeOf(error) === "ENOSPC" || hasCode(error, FULL);
