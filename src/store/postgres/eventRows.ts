import { chainHash, factOf, type RecordRow, textOf } from "../../domain/audit.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import type { EventRows } from "../../domain/store.ts";
import type { EventId, Instant, Windows } from "../../domain/units.ts";
import { concerns, GENESIS, RARE } from "../chain.ts";
import { endsOf, lastBy, outagesBefore, recordRow, ROWS } from "./auditRows.ts";
import { column, type SiteDatabase } from "./database.ts";

/** Audit rows in one page. */
const PAGE = 5_000;

/** The rows that concern an event, in order, as `queryEventRows` of SQLite finds them. */
export async function queryEventRows(
  from: SiteDatabase,
  event: EventId,
  until: Instant,
  windows: Windows = new Map(),
): Promise<EventRows> {
  const { database, site } = from;
  const [ends] = await database.query(
    "SELECT min(seq) AS first, max(seq) AS last FROM audit WHERE site = $1 AND event = $2",
    [site, column(event)],
  );
  const checkpoint = await newestCheckpoint(from);
  const first = ends?.["first"];
  if (typeof first !== "number") return { ok: true, rows: [], checkpoint };
  const start = textOf(checkpoint?.facts ?? null, "hash") ?? GENESIS.hash;
  const last = Math.max(Number(ends?.["last"]), await lastBy(from, until));
  const found: RecordRow[] = [];
  for (let low = first; low <= last; low += PAGE) {
    const page = await database.query(
      `${ROWS} WHERE audit.site = $1 AND audit.seq BETWEEN $2 AND $3 AND (audit.event = $4
         OR audit.kind IN ('daemon', 'operator', 'silence') OR audit.kind = 'decision' AND (
           position($5 IN audit.body) > 0
           OR (audit.body::json -> 8 ->> 'overruledCount')::numeric > ${MOST_OVERRULED}))
       ORDER BY audit.seq`,
      [site, low, Math.min(low + PAGE - 1, last), column(event), `"event":${JSON.stringify(event)}`],
    );
    for (const row of page) found.push(recordRow(row, start));
  }
  const chargers = new Set(found.filter((row) => row.event === event).map(({ charger }) => charger));
  const before = await outagesBefore(from, first, start);
  const concerning = [...before, ...found].filter((row) => concerns(row, event, chargers, windows));
  const rows = [...concerning, ...(await successors(from, event, concerning, start))];
  for (const { previous, text, hash, seq } of rows)
    if (chainHash(previous, text) !== hash) return { ok: false, seq };
  return { ok: true, checkpoint, rows: rows.toSorted((a, b) => a.seq - b.seq) };
}

/** The decisions that took over a charger where the event ended without a release. */
async function successors(
  { database, site }: SiteDatabase,
  event: EventId,
  rows: readonly RecordRow[],
  start: string,
): Promise<readonly RecordRow[]> {
  const decisions = rows.filter(({ kind }) => kind === "decision");
  const last = [...new Map(decisions.map((row) => [row.charger, row])).values()].filter(
    ({ facts }) => textOf(factOf(facts, "told"), "kind") !== "release",
  );
  const next = await database.query(
    `SELECT next.*, x.seq AS of FROM json_to_recordset($2::json) AS x (charger text, seq bigint)
     CROSS JOIN LATERAL (${ROWS} WHERE audit.site = $1 AND audit.charger = x.charger AND audit.seq > x.seq
       AND audit.kind = 'decision' ORDER BY audit.seq LIMIT 1) AS next`,
    [site, JSON.stringify(last.map(({ charger, seq }) => ({ charger: column(charger), seq })))],
  );
  const vehicles = new Map(last.map(({ seq, vehicle }) => [seq, vehicle]));
  return next.flatMap((stored) => {
    const row = recordRow(stored, start);
    return row.vehicle === vehicles.get(Number(stored["of"])) && row.event !== event ? [row] : [];
  });
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
