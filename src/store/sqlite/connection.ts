import { DatabaseSync, type StatementSync } from "node:sqlite";

import type { OnOlder } from "../../domain/store.ts";
import { damaged, refused, type Fault } from "../fault.ts";
import { migrate, MIGRATIONS } from "./migrations.ts";

/** Older versions can corrupt a write-ahead log (SQLite 3.51.3 release notes, "WAL-reset"). */
const OLDEST_SQLITE = [3, 51, 3] as const;

/** The write-ahead log is copied into the database at this many pages. */
export const CHECKPOINT_PAGES = 1000;

/**
 * Runs before the first read: otherwise SQLite creates a shared-memory file beside the log, and a full disk
 * has no room for it.
 */
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

/** Configures the connection and migrates the schema. Null: ready for reading and writing. Throws SQLite errors. */
export function settle(database: DatabaseSync, maxPages: number, older?: OnOlder): Fault | null {
  database.exec(ALONE);
  const version = String(database.prepare("SELECT sqlite_version() AS v").get()?.["v"]);
  if (!isRecent(version))
    return refused(`SQLite ${version} is too old: ${OLDEST_SQLITE.join(".")} is needed`);
  database.exec(PRAGMAS);
  database.exec(`PRAGMA max_page_count = ${maxPages}`);
  return migrate(database, MIGRATIONS, older);
}

/** Small tables: a swapped page in them causes a wrong command, and quick_check does not find it. */
const ACTED_ON = ["event", "event_summary", "command", "hold", "binding", "observe_period", "duty", "report"];

/** Called after a write: some builds of SQLite fall back to NORMAL once a write-ahead log is in use. */
export function checkSynchronous(database: DatabaseSync): Fault | null {
  const level = Number(database.prepare("PRAGMA synchronous").get()?.["synchronous"]);
  return level === 2
    ? null
    : refused(`synchronous reads back as ${level}, not 2: commits would not be durable`);
}

/**
 * Checks the structure of the file and the order of rows in the tables that decide commands. `loadState`
 * checks their content.
 */
export function quickCheck(database: DatabaseSync): Fault | null {
  for (const check of ["quick_check", ...ACTED_ON.map((table) => `integrity_check(${table})`)]) {
    const result = String(Object.values(database.prepare(`PRAGMA ${check}`).get() ?? {})[0]);
    if (result !== "ok") return damaged(result);
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

/** Most rows of one charger in one read: a month with one row every ten seconds. */
const MOST_READINGS = 250_000;

const put = (table: string): string =>
  `INSERT INTO ${table} (id, body, sum) VALUES (?, ?, ?)
   ON CONFLICT (id) DO UPDATE SET body = excluded.body, sum = excluded.sum`;

const putSigned = (table: string): string =>
  `INSERT INTO ${table} (id, body, sum, mac) VALUES (?, ?, ?, ?)
   ON CONFLICT (id) DO UPDATE SET body = excluded.body, sum = excluded.sum, mac = excluded.mac`;

/** The statements of a commit, and of reads that are frequent. */
const STATEMENTS = {
  putEvent: `INSERT INTO event (id, kind, body, sum, mac) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, body = excluded.body, sum = excluded.sum,
       mac = excluded.mac`,
  forgetEvent: "DELETE FROM event WHERE id = ?",
  putSummary: putSigned("event_summary"),
  forgetSummary: "DELETE FROM event_summary WHERE id = ?",
  // Keys are `<event>/<descriptor>`. "0" is the character after "/". Another event's id may start with this
  // id and a "/".
  forgetDuties:
    "DELETE FROM duty WHERE id > ?1 || '/' AND id < ?1 || '0' AND rtrim(id, '0123456789') = ?1 || '/'",
  forgetReport: "DELETE FROM report WHERE id = ?",
  forgetReportBody: "DELETE FROM report_body WHERE id = ?",
  putCommand: put("command"),
  forgetCommand: "DELETE FROM command WHERE id = ?",
  putHold: putSigned("hold"),
  forgetHold: "DELETE FROM hold WHERE id = ?",
  putBinding: putSigned("binding"),
  forgetBinding: "DELETE FROM binding WHERE id = ?",
  putObservePeriod: putSigned("observe_period"),
  forgetObservePeriod: "DELETE FROM observe_period",
  putAlarm: put("alarm"),
  forgetAlarm: "DELETE FROM alarm WHERE id = ?",
  putDeparture: put("departure"),
  forgetDeparture: "DELETE FROM departure WHERE id = ?",
  putPlugIn: put("plug_in"),
  forgetPlugIn: "DELETE FROM plug_in WHERE id = ?",
  putPrices: put("prices"),
  putDuty: putSigned("duty"),
  putReport: `INSERT INTO report (id, event, open, body, sum, mac) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body, sum = excluded.sum,
       mac = excluded.mac`,
  putReportBody: "INSERT OR REPLACE INTO report_body VALUES (?, ?, ?, ?, ?)",
  putAudit: "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', unhex(?))",
  // A row may name a charger twice.
  putAcknowledged: "INSERT OR IGNORE INTO acknowledged VALUES (?, ?)",
  // By charger: a search by `seq` would read the whole table.
  pruneAcknowledged: `DELETE FROM acknowledged WHERE (charger, seq) IN (
       SELECT item.value ->> 0, audit.seq
       FROM audit, json_each(CASE WHEN json_valid(facts) THEN facts ELSE '{}' END, '$.commands') AS item
       WHERE audit.seq <= ? AND audit.kind = 'outcome' AND audit.charger IS NULL)`,
  pruneAudit: "DELETE FROM audit WHERE seq <= ?",
  putQuarantine: "INSERT INTO quarantine VALUES (NULL, ?, ?, ?, ?, ?, ?)",
  trimQuarantine: "DELETE FROM quarantine WHERE seq <= (SELECT max(seq) FROM quarantine) - ?",
  putMeta: "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
  getMeta: "SELECT value FROM meta WHERE name = ?",
  // First and last minute that hold readings. Two separate queries: only then does SQLite read just the ends of the index.
  readingSpan: "SELECT (SELECT min(minute) FROM reading) AS first, (SELECT max(minute) FROM reading) AS last",
  // By minute: the rows of one minute of all chargers lie together, so a commit touches few pages.
  // Parameters: first minute, last minute, charger, from, until.
  readings: `WITH RECURSIVE span (minute) AS (SELECT ? UNION ALL SELECT minute + 1 FROM span WHERE minute < ?)
     SELECT reading.* FROM span CROSS JOIN reading ON reading.minute = span.minute AND reading.charger = ?
     WHERE reading.at >= ? AND reading.at < ? LIMIT ${MOST_READINGS}`,
  // Parameters: vehicle, first day, last day.
  seats: "SELECT DISTINCT charger FROM seat WHERE vehicle = ? AND day BETWEEN ? AND ? ORDER BY charger",
} as const;

/** The open database with its statements. */
export type Connection = { readonly database: DatabaseSync } & {
  readonly [name in keyof typeof STATEMENTS]: StatementSync;
};

/** A statement is prepared at its first use: a database that is reopened after each failed commit needs few. */
export function connection(database: DatabaseSync): Connection {
  const statements = Object.entries(STATEMENTS).map(
    ([name, sql]) => [name, { get: () => prepared(database, sql) }] as const,
  );
  return Object.create(null, { database: { value: database }, ...Object.fromEntries(statements) });
}

const preparedOf = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

/** The statement of this text, prepared once for each connection: to prepare it takes longer than most of its runs. */
export function prepared(database: DatabaseSync, sql: string): StatementSync {
  const known = preparedOf.get(database) ?? new Map<string, StatementSync>();
  preparedOf.set(database, known);
  const statement = known.get(sql) ?? database.prepare(sql);
  known.set(sql, statement);
  return statement;
}

/** Null: not stored. */
export function metaValue(
  connection: Connection,
  name: "head" | "siteKey" | "restored" | "readingsBefore",
): string | null {
  const row = connection.getMeta.get(name);
  return row === undefined ? null : String(row["value"]);
}

/** Applies all that `write` writes, or nothing where it throws. */
export function inTransaction<T>(database: DatabaseSync, write: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const written = write();
    database.exec("COMMIT");
    return written;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
