import type { DatabaseSync } from "node:sqlite";
import { instant, type Instant } from "../core/units.ts";
import type { PriceSeries } from "../core/prices.ts";
import { auditRow, chainRow, sumOf, type AuditRow } from "./rows.ts";

/** Absent: not asked for. `after` is a `seq`; `limit` is 1,000 unless told. */
export interface AuditQuery {
  readonly event?: string;
  readonly charger?: string;
  readonly after?: number;
  readonly limit?: number;
  /** Newest first; otherwise oldest first. */
  readonly newest?: boolean;
}

/** Rejected input as it was kept. `raw` is JSON text, capped by the reader. */
export interface Quarantined {
  readonly at: Instant;
  readonly source: string;
  readonly event: string | null;
  readonly path: string;
  readonly reason: string;
  readonly raw: string;
}

/** Rows of the record that match. Throws SQLite errors: a disk that cannot be read. */
export function queryAudit(database: DatabaseSync, query: AuditQuery): readonly AuditRow[] {
  const where = ["seq > ?"];
  const values: (string | number)[] = [query.after ?? 0];
  for (const column of ["event", "charger"] as const) {
    const wanted = query[column];
    if (wanted === undefined) continue;
    where.push(`${column} = ?`);
    values.push(wanted);
  }
  const order = query.newest === true ? "DESC" : "ASC";
  const sql = `SELECT * FROM audit WHERE ${where.join(" AND ")} ORDER BY seq ${order} LIMIT ?`;
  return database
    .prepare(sql)
    .all(...values, query.limit ?? 1000)
    .map((row) => auditRow(chainRow(row)));
}

/**
 * When the broker took a new level for this charger since then, oldest first, as the control flow counts it. A re-send
 * against foreign control counts too; what only made a level longer (`held`) does not. A level without its decision is
 * counted. Throws SQLite errors.
 */
export function queryWrites(database: DatabaseSync, charger: string, since: Instant): readonly Instant[] {
  const rows = database.prepare(
    `SELECT at, kind, command, CASE WHEN json_valid(facts) THEN facts ->> 'progress' END AS progress,
       CASE WHEN json_valid(facts) THEN facts ->> 'resent' END AS resent,
       CASE WHEN json_valid(facts) THEN facts ->> 'cause' END AS cause
     FROM audit WHERE charger = ? ORDER BY seq DESC`,
  );
  const writes = new Map<string, Instant>();
  for (const { at, kind, command, progress, resent, cause } of rows.iterate(charger)) {
    if (Number(at) < since) break;
    if (kind === "outcome" && progress === "acknowledged") writes.set(String(command), instant(Number(at)));
    if (kind === "outcome" && resent === 1)
      writes.set(`${String(command)} at ${Number(at)}`, instant(Number(at)));
    if (kind === "decision" && cause === "held") writes.delete(String(command));
  }
  return [...writes.values()].toReversed();
}

/** Newest first. */
export function queryQuarantine(database: DatabaseSync, limit: number): readonly Quarantined[] {
  return database
    .prepare("SELECT * FROM quarantine ORDER BY seq DESC LIMIT ?")
    .all(limit)
    .map((row) => ({
      at: instant(Number(row["at"])),
      source: String(row["source"]),
      event: row["event"] === null ? null : String(row["event"]),
      path: String(row["path"]),
      reason: String(row["reason"]),
      raw: String(row["raw"]),
    }));
}

/** The last series of each kind and region. One that was changed on the disk is left out: the partner has it. */
export function queryPrices(database: DatabaseSync): readonly PriceSeries[] {
  return database
    .prepare("SELECT * FROM prices")
    .all()
    .filter(({ id, body, sum }) => sumOf("prices", String(id), String(body)) === sum)
    .map(({ body }): PriceSeries => JSON.parse(String(body)));
}
