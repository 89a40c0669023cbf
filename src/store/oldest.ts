import type { DatabaseSync } from "node:sqlite";
import type { OldRows, OldRowsQuery } from "../core/retention.ts";
import { instant, type Instant } from "../core/units.ts";

/** Only ever a beginning of the record: the first row that must stay keeps all that follow. Null: nothing may go. */
export function queryOldRows(
  database: DatabaseSync,
  { before, maxRows, most }: OldRowsQuery,
): OldRows | null {
  const ends = database.prepare("SELECT min(seq) AS first, max(seq) AS last FROM audit").get();
  const [first, last] = [Number(ends?.["first"] ?? 1), Number(ends?.["last"] ?? 0)];
  const step = first + most - 1;
  const stays = database
    .prepare("SELECT seq FROM audit WHERE seq BETWEEN ? AND ? AND at >= ? ORDER BY seq LIMIT 1")
    .get(first, step, before ?? -Number.MAX_SAFE_INTEGER);
  // Of too many a whole step goes: each checkpoint is a row too.
  const mayGo = stays === undefined || last - first >= maxRows ? step : Number(stays["seq"]) - 1;
  const through = Math.min(mayGo, last);
  const row = database.prepare("SELECT hash, at FROM audit WHERE seq = ?").get(through);
  if (through < first || row === undefined) return null;
  return { rows: through - first + 1, through, hash: String(row["hash"]), at: instant(Number(row["at"])) };
}

/** Reports that were composed before then and will not be tried again, the oldest first. */
export function queryOldReports(database: DatabaseSync, before: Instant, most: number): readonly string[] {
  return database
    .prepare(
      `SELECT id FROM report WHERE open = 0 AND json_valid(body) AND json_extract(body, '$.composedAt') < ?
       ORDER BY seq LIMIT ?`,
    )
    .all(before, most)
    .map(({ id }) => String(id));
}
