import { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";

const SQLITE_FULL = 13;
const { exec } = DatabaseSync.prototype;

/** Makes every commit of this process fail as a full disk does, for as long as `isFull` says so. */
export function diskThatFillsUp(isFull: () => boolean): void {
  vi.spyOn(DatabaseSync.prototype, "exec").mockImplementation(function (this: DatabaseSync, sql: string) {
    if (sql === "COMMIT" && isFull()) {
      throw Object.assign(new Error("database or disk is full"), {
        code: "ERR_SQLITE_ERROR",
        errcode: SQLITE_FULL,
      });
    }
    exec.call(this, sql);
  });
}
