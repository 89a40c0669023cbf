import { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";

const SQLITE_IOERR = 10;
const SQLITE_FULL = 13;
const { exec } = DatabaseSync.prototype;

const failure = (words: string, errcode: number): Error =>
  Object.assign(new Error(words), { code: "ERR_SQLITE_ERROR", errcode });

/**
 * Makes every commit of this process fail as a full disk does, for as long as `isFull` says so. Doubtful: the commit is
 * made, and said to have failed.
 */
export function diskThatFillsUp(isFull: () => boolean, isDoubtful: () => boolean = () => false): void {
  vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql: string) {
    if (sql === "COMMIT" && isFull()) throw failure("database or disk is full", SQLITE_FULL);
    exec.call(this, sql);
    if (sql === "COMMIT" && isDoubtful()) throw failure("disk I/O error", SQLITE_IOERR);
  });
}
