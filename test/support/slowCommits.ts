/**
 * Loaded before the daemon (`node --import`), in the tests only: while the file that SLOW_DISK names is there, each commit
 * takes two seconds longer, as on a disk whose sync is slow. The loop stands still meanwhile, as it does there.
 */
import { existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";

const SYNC_MS = 2_000;
const file = process.env["SLOW_DISK"] ?? "";
const never = new Int32Array(new SharedArrayBuffer(4));
const { exec } = DatabaseSync.prototype;

DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string): void {
  exec.call(this, sql);
  if (sql === "COMMIT" && existsSync(file)) Atomics.wait(never, 0, 0, SYNC_MS);
};
