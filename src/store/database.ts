import { DatabaseSync } from "node:sqlite";
import { damaged, refused, type Fault } from "./fault.ts";
import { migrate } from "./migrations.ts";

/** File name in the state directory. */
export const DATABASE = "setpointd.db";

/** Older ones can corrupt a write-ahead log (reference: SQLite 3.51.3 release notes, "WAL-reset"). */
const OLDEST_SQLITE = [3, 51, 3] as const;

/** The write-ahead log is written into the database when it has that many pages. */
export const CHECKPOINT_PAGES = 1000;

/** Before anything is read: else a file is made beside the database for its log, and a full disk has no room for that. */
const ALONE = "PRAGMA locking_mode = EXCLUSIVE";

const PRAGMAS = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};
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
  database.exec(ALONE);
  const version = String(database.prepare("SELECT sqlite_version() AS v").get()?.["v"]);
  if (!isRecent(version))
    return refused(`SQLite ${version} is too old: ${OLDEST_SQLITE.join(".")} is needed`);
  database.exec(PRAGMAS);
  database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return migrate(database);
}

/** Small tables: a swapped page in them is a wrong command, and quick_check does not see it. */
const ACTED_ON = ["event", "event_summary", "command", "hold", "duty", "report"];

/** Called after a write: some builds of SQLite fall back to NORMAL once a write-ahead log is in use. */
export function checkSynchronous(database: DatabaseSync): Fault | null {
  const level = Number(database.prepare("PRAGMA synchronous").get()?.["synchronous"]);
  return level === 2
    ? null
    : refused(`synchronous reads back as ${level}, not 2: commits would not be durable`);
}

/** The structure of the file, and the order of the rows that are acted on; what is in them is checked by `remember`. */
export function quickCheck(database: DatabaseSync): Fault | null {
  for (const check of ["quick_check", ...ACTED_ON.map((table) => `integrity_check(${table})`)]) {
    const said = String(Object.values(database.prepare(`PRAGMA ${check}`).get() ?? {})[0]);
    if (said !== "ok") return damaged(said);
  }
  return null;
}

function isRecent(version: string): boolean {
  const parts = version.split(".").map(Number);
  for (const [index, least] of OLDEST_SQLITE.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}
