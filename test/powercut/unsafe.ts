/** Loaded before a writer, to show that the harness finds what it is for: no commit waits for the disk. */
import { DatabaseSync } from "node:sqlite";

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  // After the program has read back that it is FULL.
  if (sql === "BEGIN IMMEDIATE") exec.call(this, "PRAGMA synchronous = OFF");
  exec.call(this, sql);
};
