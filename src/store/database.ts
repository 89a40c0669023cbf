import { DatabaseSync } from "node:sqlite";
import { damaged, refused, type Fault } from "./fault.ts";
import { migrate } from "./migrations.ts";

/** File name in the state directory. */
export const DATABASE = "setpointd.db";

/** Older ones can corrupt a write-ahead log (reference: SQLite 3.51.3 release notes, "WAL-reset"). */
const OLDEST_SQLITE = [3, 51, 3] as const;

const PRAGMAS = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 1000;
  PRAGMA journal_size_limit = 4194304;
  PRAGMA foreign_keys = ON;
  PRAGMA trusted_schema = OFF;
  PRAGMA cell_size_check = ON;
  PRAGMA mmap_size = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16384;
`;

/** Settles the connection and brings the schema up to date. Null: ready for reading and writing. Throws SQLite errors. */
export function settle(database: DatabaseSync, maxPages: number): Fault | null {
  const version = String(database.prepare("SELECT sqlite_version() AS v").get()?.["v"]);
  if (!isRecent(version))
    return refused(`SQLite ${version} is too old: ${OLDEST_SQLITE.join(".")} is needed`);
  database.exec(PRAGMAS);
  database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return migrate(database);
}

/** Called after a write: some builds of SQLite fall back to NORMAL once a write-ahead log is in use. */
export function checkSynchronous(database: DatabaseSync): Fault | null {
  const level = Number(database.prepare("PRAGMA synchronous").get()?.["synchronous"]);
  return level === 2
    ? null
    : refused(`synchronous reads back as ${level}, not 2: commits would not be durable`);
}

/** The structure of the file; not what is in it. */
export function quickCheck(database: DatabaseSync): Fault | null {
  const said = database.prepare("PRAGMA quick_check(1)").get()?.["quick_check"];
  return said === "ok" ? null : damaged(String(said));
}

function isRecent(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, least] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}
