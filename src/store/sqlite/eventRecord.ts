import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type { Logger } from "pino";

import { factOf, type RecordRow, textOf } from "../../domain/audit.ts";
import type { EventSummary, KnownEvent } from "../../domain/event.ts";
import { MOST_OVERRULED } from "../../domain/reason.ts";
import type { EventRows } from "../../domain/store.ts";
import type { EventId, Instant, Windows } from "../../domain/units.ts";
import { firstIndex } from "../../platform/collections.ts";
import { auditRow, EventRowSearch, GENESIS, RARE, rowText, startOf } from "../chain.ts";
import { type Fault, isFault } from "../fault.ts";
import { chainRow, hashIn } from "./auditRows.ts";
import { type Source, readEvent, readSummary } from "./bodies.ts";
import { prepared } from "./connection.ts";
import type { Disk } from "./disk.ts";
import { faultOf } from "./fault.ts";

/** The stored events, one by one. Null: not stored, or not readable, which is logged. */
export function archiveOf(disk: Pick<Disk, "connection">, siteKey: Buffer, log: Logger) {
  const read = <T extends object>(
    event: EventId,
    query: (from: Source, id: EventId) => T | Fault | null,
  ): T | null => {
    const found = attempt(() =>
      query(
        { database: disk.connection.database, trust: { siteKey, isSigned: true }, onEdited: null },
        event,
      ),
    );
    if (found === null || !isFault(found)) return found;
    log.error({ event, reason: found.reason }, "a stored event cannot be read");
    return null;
  };
  return {
    event: (id: EventId): KnownEvent | null => read(id, readEvent),
    summary: (id: EventId): EventSummary | null => read(id, readSummary),
  };
}

function attempt<T>(query: () => T): T | Fault {
  try {
    return query();
  } catch (error) {
    return faultOf(error);
  }
}

/**
 * The numbers of the rows that concern an event, in order.
 * - Its own rows, the decisions that overruled it, and those that took over from it.
 * - Until `until`, when its last window ends: rows of the daemon, of operators and of outages.
 * - Outages that were open when it began.
 * There may be a hundred thousand, so the generator yields after each page. Throws SQLite errors.
 */
export function* queryEventRows(
  database: DatabaseSync,
  event: EventId,
  until: Instant,
  windows: Windows = new Map(),
): Generator<void, EventRows> {
  const ends = database
    .prepare("SELECT min(seq) AS first, max(seq) AS last FROM audit WHERE event = ?")
    .get(event);
  const checkpoint = newestCheckpoint(database);
  const first = ends?.["first"];
  if (typeof first !== "number") return { ok: true, seqs: [], checkpoint };
  const start = startOf(checkpoint);
  const last = Math.max(Number(ends?.["last"]), lastBy(database, until));
  const found = new EventRowSearch(event, windows);
  const page = database.prepare(
    `${ROWS} WHERE audit.seq BETWEEN ? AND ? AND (audit.event = ? OR audit.kind IN ('daemon', 'operator', 'silence')
       OR audit.kind = 'decision' AND (instr(audit.facts, ?) > 0 OR audit.facts ->> 'overruledCount' > ${MOST_OVERRULED}))
     ORDER BY audit.seq`,
  );
  for (const row of outagesBefore(database, first, start)) found.add(row);
  for (let from = first; from <= last; from += PAGE) {
    const through = Math.min(from + PAGE - 1, last);
    for (const row of page.all(from, through, event, `"event":${JSON.stringify(event)}`))
      found.add(recordRow(row, start));
    yield;
  }
  const next = database.prepare(
    `${ROWS} WHERE audit.charger = ? AND audit.seq > ? AND audit.kind = 'decision' ORDER BY audit.seq LIMIT 1`,
  );
  for (const { charger, seq, vehicle } of found.unreleased()) {
    const row = next.get(charger, seq);
    if (row !== undefined) found.addNext(recordRow(row, start), vehicle);
    yield;
  }
  return found.result(checkpoint);
}

/** These rows of the record, in order. One that is no longer stored is left out. Throws SQLite errors. */
export function queryRecordRows(database: DatabaseSync, seqs: readonly number[]): readonly RecordRow[] {
  const start = startOf(newestCheckpoint(database));
  const statement = prepared(database, `${ROWS} WHERE audit.seq = ?`);
  return seqs.flatMap((seq) => {
    const row = statement.get(seq);
    return row === undefined ? [] : [recordRow(row, start)];
  });
}

/** Audit rows in one page. */
const PAGE = 500;

/** Each row with the hash of the row before it. */
const ROWS = `SELECT audit.*, ${hashIn("before")} AS previous
  FROM audit LEFT JOIN audit AS before ON before.seq = audit.seq - 1`;

/** Most silence rows that are read backwards. */
const MOST_OUTAGES = 10_000;

/** Outages that are still open at the end of the record. Throws SQLite errors. */
export const queryOpenOutages = (database: DatabaseSync): readonly RecordRow[] =>
  outagesBefore(database, Number.MAX_SAFE_INTEGER, GENESIS.hash);

/** Outages that began before this row and were still open then. */
function outagesBefore(database: DatabaseSync, seq: number, start: string): readonly RecordRow[] {
  const newest = new Map<string, RecordRow>();
  const silences = database.prepare(
    `${ROWS} WHERE audit.kind = 'silence' AND audit.seq < ? ORDER BY audit.seq DESC LIMIT ${MOST_OUTAGES}`,
  );
  for (const stored of silences.iterate(seq)) {
    const row = recordRow(stored, start);
    const outage = `${row.charger} ${textOf(row.facts, "outage")}`;
    if (!newest.has(outage)) newest.set(outage, row);
  }
  return [...newest.values()].filter(
    ({ facts }) => textOf(facts, "outage") !== null && factOf(facts, "over") !== true,
  );
}

/** `start`: hash before the oldest stored row. */
function recordRow(row: Record<string, SQLOutputValue>, start: string): RecordRow {
  const stored = chainRow(row);
  const previous = row["previous"] === null ? start : String(row["previous"]);
  return { ...auditRow(stored), previous, text: rowText(stored.cells, stored.facts) };
}

/** Rows are in order of time, except after a step of the clock. */
function lastBy(database: DatabaseSync, until: Instant): number {
  const ends = database.prepare("SELECT min(seq) AS first, max(seq) AS last FROM audit").get();
  const [first, last] = [Number(ends?.["first"] ?? 1), Number(ends?.["last"] ?? 0)];
  const at = database.prepare("SELECT at FROM audit WHERE seq = ?");
  return first - 1 + firstIndex(last - first + 1, (index) => Number(at.get(first + index)?.["at"]) > until);
}

/** Null: the record begins with row 1. */
function newestCheckpoint(database: DatabaseSync): RecordRow | null {
  if (database.prepare("SELECT 1 FROM audit WHERE seq = 1").get() !== undefined) return null;
  const row = database
    .prepare(`SELECT * FROM audit WHERE kind = 'checkpoint' AND ${RARE} ORDER BY seq DESC LIMIT 1`)
    .get();
  return row === undefined ? null : recordRow({ ...row, previous: null }, GENESIS.hash);
}

/** Hashes of those of these rows that are still stored. Throws SQLite errors. */
export function queryHashes(database: DatabaseSync, seqs: readonly number[]): ReadonlyMap<number, string> {
  const hash = database.prepare(`SELECT ${hashIn("audit")} AS hash FROM audit WHERE seq = ?`);
  return new Map(
    seqs.flatMap((seq) => {
      const row = hash.get(seq);
      return row === undefined ? [] : [[seq, String(row["hash"])] as const];
    }),
  );
}
