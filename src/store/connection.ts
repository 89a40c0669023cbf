import type { DatabaseSync, StatementSync } from "node:sqlite";

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
