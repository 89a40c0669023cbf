import type { DatabaseSync, SQLOutputValue } from "node:sqlite";

import type { ReportRecord } from "../../domain/report.ts";
import type { ReportQuery } from "../../domain/store.ts";
import { isOurs, signed, storedBody } from "./bodies.ts";
import { type Connection, prepared } from "./connection.ts";

/** Closed reports are kept for inspection: the newest records, and the newest bodies. */
const MOST_REPORTS = 10_000;
const MOST_BODY_BYTES = 128 * 1024 * 1024;
/** Bytes that are deleted beyond the limit, so that not each further body deletes another. */
const TRIMMED_AT_ONCE = 8 * 1024 * 1024;

/** Throws SQLite errors. */
export function putReport(
  connection: Connection,
  siteKey: Buffer,
  record: ReportRecord,
  content: string | null,
): void {
  const { name, event, nextTry } = record;
  const body = JSON.stringify(record);
  connection.putReport.run(name, event, nextTry === null ? 0 : 1, ...signed(siteKey, "report", name, body));
  if (content === null) return;
  const whole = content.toWellFormed();
  connection.putReportBody.run(name, whole.length, ...signed(siteKey, "report_body", name, whole));
  trimReports(connection);
  trimBodies(connection.database, whole.length);
}

/** Deletes the oldest closed reports with their bodies. Open ones always stay. */
function trimReports({ database, forgetReportBody }: Connection): void {
  const trimmed = prepared(
    database,
    `DELETE FROM report WHERE open = 0 AND seq <= (SELECT max(seq) FROM report) - ${MOST_REPORTS} RETURNING id`,
  ).all();
  for (const { id } of trimmed) forgetReportBody.run(String(id));
}

/** Room until the sizes of all bodies are added up again, which takes 30 ms with 10,000 bodies. */
const roomIn = new WeakMap<DatabaseSync, number>();

/** Deletes the oldest bodies of closed reports where all bodies together are too large. `added`: size of a new one. */
function trimBodies(database: DatabaseSync, added: number): void {
  const room = (roomIn.get(database) ?? 0) - added;
  roomIn.set(database, room);
  if (room >= 0) return;
  const total = Number(database.prepare("SELECT sum(size) AS total FROM report_body").get()?.["total"]);
  const isTooMuch = total > MOST_BODY_BYTES;
  roomIn.set(database, isTooMuch ? TRIMMED_AT_ONCE : MOST_BODY_BYTES - total);
  if (!isTooMuch) return;
  database
    .prepare(
      `DELETE FROM report_body WHERE id IN (SELECT id FROM (
         SELECT id, sum(size) OVER (ORDER BY rowid DESC) AS newer FROM report_body
       ) WHERE newer > ${MOST_BODY_BYTES - TRIMMED_AT_ONCE}) AND id NOT IN (SELECT id FROM report WHERE open = 1)`,
    )
    .run();
}

/** Newest first. A report that was changed on disk is left out. */
export function queryReports(
  database: DatabaseSync,
  siteKey: Buffer,
  { event, limit = 1000 }: ReportQuery,
): readonly ReportRecord[] {
  const rows =
    event === undefined
      ? database.prepare("SELECT id, body, sum, mac FROM report ORDER BY seq DESC LIMIT ?").all(limit)
      : database
          .prepare("SELECT id, body, sum, mac FROM report WHERE event = ? ORDER BY seq DESC LIMIT ?")
          .all(event, limit);
  return rows
    .filter((row) => isWhole(siteKey, "report", row))
    .map(({ body }): ReportRecord => JSON.parse(String(body)));
}

/** A report by name. Null: none. Its body is null if it was pruned or changed. */
export function queryReport(
  database: DatabaseSync,
  siteKey: Buffer,
  name: string,
): { readonly record: ReportRecord; readonly body: string | null } | null {
  const found = database.prepare("SELECT id, body, sum, mac FROM report WHERE id = ?").get(name);
  if (found === undefined || !isWhole(siteKey, "report", found)) return null;
  const record: ReportRecord = JSON.parse(String(found["body"]));
  const stored = database.prepare("SELECT id, body, sum, mac FROM report_body WHERE id = ?").get(name);
  const isOurs = stored !== undefined && isWhole(siteKey, "report_body", stored);
  return { record, body: isOurs ? String(stored["body"]) : null };
}

function isWhole(
  siteKey: Buffer,
  table: "report" | "report_body",
  row: Record<string, SQLOutputValue>,
): boolean {
  const stored = storedBody(table, row);
  return stored.isWhole && isOurs({ siteKey, isSigned: true }, table, stored);
}
