import { DatabaseSync, type StatementSync } from "node:sqlite";

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

/** The open database with the statements that a commit runs, prepared once. */
export interface Connection {
  readonly database: DatabaseSync;
  readonly putEvent: StatementSync;
  readonly forgetEvent: StatementSync;
  readonly putSummary: StatementSync;
  readonly forgetSummary: StatementSync;
  readonly forgetDuties: StatementSync;
  readonly forgetReport: StatementSync;
  readonly forgetReportBody: StatementSync;
  readonly putCommand: StatementSync;
  readonly forgetCommand: StatementSync;
  readonly putHold: StatementSync;
  readonly endHold: StatementSync;
  readonly putPrices: StatementSync;
  readonly putDuty: StatementSync;
  readonly putReport: StatementSync;
  readonly putReportBody: StatementSync;
  readonly putAudit: StatementSync;
  readonly pruneAudit: StatementSync;
  readonly putQuarantine: StatementSync;
  readonly trimQuarantine: StatementSync;
  readonly putMeta: StatementSync;
  readonly getMeta: StatementSync;
  /** First and last minute of which there are any. */
  readonly readingSpan: StatementSync;
  /** First and last minute, charger, from, until. */
  readonly readings: StatementSync;
  /** Vehicle, first and last day. */
  readonly seats: StatementSync;
}

/** More rows of one charger than this are not read at once: a month of one in ten seconds. */
const MOST_READINGS = 250_000;

export function connection(database: DatabaseSync): Connection {
  const put = (table: string): StatementSync =>
    database.prepare(
      `INSERT INTO ${table} (id, body, sum) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET body = excluded.body, sum = excluded.sum`,
    );
  const putSigned = (table: string): StatementSync =>
    database.prepare(
      `INSERT INTO ${table} (id, body, sum, mac) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET body = excluded.body, sum = excluded.sum, mac = excluded.mac`,
    );
  return {
    database,
    putEvent: database.prepare(
      `INSERT INTO event (id, kind, body, sum, mac) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, body = excluded.body, sum = excluded.sum,
         mac = excluded.mac`,
    ),
    forgetEvent: database.prepare("DELETE FROM event WHERE id = ?"),
    putSummary: putSigned("event_summary"),
    forgetSummary: database.prepare("DELETE FROM event_summary WHERE id = ?"),
    // `<event>/<descriptor>`; "0" is what follows "/", and another event's id may begin with this one's and a "/".
    forgetDuties: database.prepare(
      "DELETE FROM duty WHERE id > ?1 || '/' AND id < ?1 || '0' AND rtrim(id, '0123456789') = ?1 || '/'",
    ),
    forgetReport: database.prepare("DELETE FROM report WHERE id = ?"),
    forgetReportBody: database.prepare("DELETE FROM report_body WHERE id = ?"),
    putCommand: put("command"),
    forgetCommand: database.prepare("DELETE FROM command WHERE id = ?"),
    putHold: putSigned("hold"),
    endHold: database.prepare("DELETE FROM hold WHERE id = ?"),
    putPrices: put("prices"),
    putDuty: putSigned("duty"),
    putReport: database.prepare(
      `INSERT INTO report (id, event, open, body, sum, mac) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body, sum = excluded.sum,
         mac = excluded.mac`,
    ),
    putReportBody: database.prepare("INSERT OR REPLACE INTO report_body VALUES (?, ?, ?, ?, ?)"),
    putAudit: database.prepare("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    pruneAudit: database.prepare("DELETE FROM audit WHERE seq <= ?"),
    putQuarantine: database.prepare("INSERT INTO quarantine VALUES (NULL, ?, ?, ?, ?, ?, ?)"),
    trimQuarantine: database.prepare(
      "DELETE FROM quarantine WHERE seq <= (SELECT max(seq) FROM quarantine) - ?",
    ),
    putMeta: database.prepare(
      "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ),
    getMeta: database.prepare("SELECT value FROM meta WHERE name = ?"),
    // One by one: only then does SQLite look at the ends of the index alone.
    readingSpan: database.prepare(
      "SELECT (SELECT min(minute) FROM reading) AS first, (SELECT max(minute) FROM reading) AS last",
    ),
    // By the minute: the rows of a minute lie together, whosever they are, so that a commit touches few pages.
    readings: database.prepare(
      `WITH RECURSIVE span (minute) AS (SELECT ? UNION ALL SELECT minute + 1 FROM span WHERE minute < ?)
       SELECT reading.* FROM span CROSS JOIN reading ON reading.minute = span.minute AND reading.charger = ?
       WHERE reading.at >= ? AND reading.at < ? LIMIT ${MOST_READINGS}`,
    ),
    seats: database.prepare(
      "SELECT DISTINCT charger FROM seat WHERE vehicle = ? AND day BETWEEN ? AND ? ORDER BY charger",
    ),
  };
}

/** Null: not there. */
export function metaValue(
  connection: Connection,
  name: "head" | "siteKey" | "restored" | "readingsBefore",
): string | null {
  const row = connection.getMeta.get(name);
  return row === undefined ? null : String(row["value"]);
}
