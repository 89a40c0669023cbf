import type { RecordRow } from "../../domain/audit.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import type { EventRows } from "../../domain/store.ts";
import type { EventId, Instant, Windows } from "../../domain/units.ts";
import { EventRowSearch, GENESIS, RARE, startOf } from "../chain.ts";
import { endsOf, lastBy, outagesBefore, recordRow, ROWS } from "./auditRows.ts";
import { column, type SiteDatabase } from "./database.ts";

/** Audit rows in one page. */
const PAGE = 5_000;

/** The numbers of the rows that concern an event, in order, as `queryEventRows` of SQLite finds them. */
export async function queryEventRows(
  from: SiteDatabase,
  event: EventId,
  until: Instant,
  windows: Windows,
): Promise<EventRows> {
  const { database, site } = from;
  const [ends] = await database.query(
    "SELECT min(seq) AS first, max(seq) AS last FROM audit WHERE site = $1 AND event = $2",
    [site, column(event)],
  );
  const checkpoint = await newestCheckpoint(from);
  const first = ends?.["first"];
  if (typeof first !== "number") return { ok: true, seqs: [], checkpoint };
  const start = startOf(checkpoint);
  const last = Math.max(Number(ends?.["last"]), await lastBy(from, until));
  const found = new EventRowSearch(event, windows);
  for (const row of await outagesBefore(from, first, start)) found.add(row);
  for (let low = first; low <= last; low += PAGE) {
    const page = await database.query(
      `${ROWS} WHERE audit.site = $1 AND audit.seq BETWEEN $2 AND $3 AND (audit.event = $4
         OR audit.kind IN ('daemon', 'operator', 'silence') OR audit.kind = 'decision' AND (
           position($5 IN audit.body) > 0
           OR (audit.body::json -> 8 ->> 'overruledCount')::numeric > ${MOST_OVERRULED}))
       ORDER BY audit.seq`,
      [site, low, Math.min(low + PAGE - 1, last), column(event), `"event":${JSON.stringify(event)}`],
    );
    for (const row of page) found.add(recordRow(row, start));
  }
  const unreleased = found.unreleased();
  for (let done = 0; done < unreleased.length; done += PAGE) {
    const some = unreleased.slice(done, done + PAGE);
    const next = await database.query(
      `SELECT next.*, x.seq AS of FROM json_to_recordset($2::json) AS x (charger text, seq bigint)
       CROSS JOIN LATERAL (${ROWS} WHERE audit.site = $1 AND audit.charger = x.charger AND audit.seq > x.seq
         AND audit.kind = 'decision' ORDER BY audit.seq LIMIT 1) AS next`,
      [site, JSON.stringify(some.map(({ charger, seq }) => ({ charger: column(charger), seq })))],
    );
    const vehicles = new Map(some.map(({ seq, vehicle }) => [seq, vehicle]));
    for (const row of next) found.addNext(recordRow(row, start), vehicles.get(Number(row["of"])) ?? null);
  }
  return found.result(checkpoint);
}

/** These rows of the record, in order. One that is no longer stored is left out. */
export async function queryRecordRows(
  from: SiteDatabase,
  seqs: readonly number[],
): Promise<readonly RecordRow[]> {
  const start = startOf(await newestCheckpoint(from));
  const rows = await from.database.query(
    `${ROWS} WHERE audit.site = $1 AND audit.seq = ANY ($2::bigint[]) ORDER BY audit.seq`,
    [from.site, seqs],
  );
  return rows.map((row) => recordRow(row, start));
}

/** Null: the record begins with row 1. */
export async function newestCheckpoint(from: SiteDatabase): Promise<RecordRow | null> {
  if ((await endsOf(from)).first === 1) return null;
  const [row] = await from.database.query(
    `SELECT body, hash, NULL AS previous FROM audit
     WHERE site = $1 AND kind = 'checkpoint' AND ${RARE} ORDER BY seq DESC LIMIT 1`,
    [from.site],
  );
  return row === undefined ? null : recordRow(row, GENESIS.hash);
}
