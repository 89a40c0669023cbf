import type { SQLOutputValue, DatabaseSync } from "node:sqlite";

import type { EditedEvent } from "../../domain/changes.ts";
import { type EventSummary, type KnownEvent, summaryOf, type TrackedEvent } from "../../domain/event.ts";
import { type EventId, type Instant, eventId } from "../../domain/units.ts";
import type { ResumableTask } from "../../platform/cooperative.ts";
import { eventBody, eventIn, macOf, type BodyTable } from "../bodies.ts";
import { type Fault, damaged } from "../fault.ts";
import { sumOf } from "./auditRows.ts";
import { type Connection, prepared } from "./connection.ts";
import { faultOf } from "./fault.ts";

/**
 * Tables whose bodies carry an HMAC: an edit of one could make us command, release or report something else.
 * A command is only compared with its event, and prices are only shown.
 */
const SIGNED = [
  "event",
  "event_summary",
  "hold",
  "binding",
  "observe_period",
  "duty",
  "report",
  "report_body",
] as const satisfies readonly BodyTable[];
export type SignedTable = (typeof SIGNED)[number];

export const isSignedTable = (table: BodyTable): table is SignedTable =>
  SIGNED.some((name) => name === table);

/** Key and version for the checks of stored bodies. */
export interface Trust {
  readonly siteKey: Buffer;
  /** False: written by a version that did not sign. */
  readonly isSigned: boolean;
}

/** Body, sum and HMAC, as they are stored. */
export function signed(
  siteKey: Buffer,
  table: SignedTable,
  id: string,
  body: string,
): readonly [body: string, sum: number, mac: string] {
  const mac = macOf(siteKey, table, id, body);
  return [body, sumOf(table, id, body, mac), mac];
}

/** A row of such a table. */
export interface StoredBody {
  readonly id: string;
  readonly body: string;
  /** Null: not signed. */
  readonly mac: string | null;
  /** The sum matches: no bit has flipped. */
  readonly isWhole: boolean;
}

/** A stored body. `isWhole`: its checksum fits. */
export function storedBody(table: BodyTable, row: Record<string, SQLOutputValue>): StoredBody {
  const [id, body] = [String(row["id"]), String(row["body"])];
  const mac = typeof row["mac"] === "string" ? row["mac"] : null;
  return { id, body, mac, isWhole: sumOf(table, id, body, mac ?? "") === row["sum"] };
}

/** True: we wrote this body, in this place. Tables without an HMAC always pass. */
export function isOurs(
  { siteKey, isSigned }: Trust,
  table: BodyTable,
  { id, body, mac }: StoredBody,
): boolean {
  const name = SIGNED.find((each) => each === table);
  return name === undefined || !isSigned || mac === macOf(siteKey, name, id, body);
}

/** Columns that `isOurs` needs. */
const columnsOf = (table: BodyTable): string =>
  isSignedTable(table) ? "id, body, sum, mac" : "id, body, sum";

/** Signs all bodies of a state of an earlier version as they are. Returns their number. Throws SQLite errors. */
export function signBodies({ database }: Connection, siteKey: Buffer): number {
  let count = 0;
  for (const table of SIGNED) {
    // Summaries are signed when they are created.
    if (table === "event_summary") continue;
    const read = database.prepare(`SELECT body FROM ${table} WHERE id = ?`);
    const sign = database.prepare(`UPDATE ${table} SET body = ?, sum = ?, mac = ? WHERE id = ?`);
    for (const { id } of database.prepare(`SELECT id FROM ${table}`).all()) {
      sign.run(...signed(siteKey, table, String(id), String(read.get(String(id))?.["body"])), String(id));
      count += 1;
    }
  }
  return count;
}

/** Bodies checked in one step. */
const PAGE = 200;

/** The first body that we did not write. Null: all are ours. Bodies added during the check may be missed. */
export function* verifyingBodies(open: () => Connection, siteKey: Buffer): ResumableTask<string | null> {
  for (const table of SIGNED) {
    for (let after = ""; ;) {
      const page = open()
        .database.prepare(`SELECT id, body, sum, mac FROM ${table} WHERE id > ? ORDER BY id LIMIT ${PAGE}`)
        .all(after);
      for (const row of page) {
        const stored = storedBody(table, row);
        if (!stored.isWhole || !isOurs({ siteKey, isSigned: true }, table, stored))
          return `the stored ${table} ${stored.id} was changed`;
        after = stored.id;
      }
      if (page.length < PAGE) break;
      yield;
    }
  }
  return null;
}

/** The database to read bodies from, with the key for the checks. */
export interface Source {
  readonly database: DatabaseSync;
  readonly trust: Trust;
  /** Null: an edited event counts as damage. */
  readonly onEdited: ((event: EditedEvent) => void) | null;
}

/** Reads all bodies of a table. Null: each is ours. Throws SQLite errors. */
export function readBodies(
  from: Source,
  table: BodyTable,
  take: (body: string) => void,
  which = "",
): Fault | null {
  for (const row of prepared(from.database, `SELECT ${columnsOf(table)} FROM ${table} ${which}`).iterate()) {
    const broken = readBody(from, table, row, take);
    if (broken !== null) return broken;
  }
  return null;
}

/** Reads the bodies of these ids; missing ids are skipped. */
export function readSome(
  from: Source,
  table: BodyTable,
  ids: Iterable<string>,
  take: (body: string) => void,
): Fault | null {
  const stored = prepared(from.database, `SELECT ${columnsOf(table)} FROM ${table} WHERE id = ?`);
  for (const id of ids) {
    const row = stored.get(id);
    const broken = row === undefined ? null : readBody(from, table, row, take);
    if (broken !== null) return broken;
  }
  return null;
}

const changed = (table: BodyTable, id: string): Fault => damaged(`the stored ${table} ${id} was changed`);

/** A wrong sum means a flipped bit, so the whole state is damaged. A right sum with a wrong HMAC means an edit. */
function readBody(
  { trust, onEdited }: Source,
  table: BodyTable,
  row: Record<string, SQLOutputValue>,
  take: (body: string) => void,
): Fault | null {
  const stored = storedBody(table, row);
  const { id, body } = stored;
  if (!stored.isWhole) return changed(table, id);
  if (isOurs(trust, table, stored)) take(body);
  else if (table === "event" && onEdited !== null) onEdited({ id: eventId(id), raw: body });
  else return damaged(`the stored ${table} ${id} was edited by another program`);
  return null;
}

/** Stores an event and, beside it, the summary that memory keeps after its end. Throws SQLite errors. */
export function putEvent(
  { putEvent: put, putSummary }: Connection,
  siteKey: Buffer,
  known: KnownEvent,
): void {
  const body = eventBody(known);
  put.run(known.id, known.kind, ...signed(siteKey, "event", known.id, body));
  storeSummary(putSummary, siteKey, summaryOf(known, body.length));
}

/** A whole event. Null: not stored. Throws SQLite errors. */
export function readEvent(from: Source, id: EventId): KnownEvent | Fault | null {
  let known: KnownEvent | null = null;
  return readSome(from, "event", [id], (body) => (known = eventIn(body))) ?? known;
}

/** The summary of an event. Null: not stored. Throws SQLite errors. */
export function readSummary(from: Source, id: EventId): EventSummary | Fault | null {
  let summary: EventSummary | null = null;
  return readSome(from, "event_summary", [id], (body) => (summary = JSON.parse(body))) ?? summary;
}

/**
 * All events in order of arrival: a summary of each that is over by `at`, the others whole. An ended event is
 * not read, unless an earlier version stored no summary of it. Throws SQLite errors.
 */
export function trackedEvents(
  connection: Connection,
  from: Source,
  at: Instant,
): readonly TrackedEvent[] | Fault {
  const { database } = connection;
  const tracked: TrackedEvent[] = [];
  const made: EventSummary[] = [];
  const rows = database.prepare(
    `SELECT event.id AS id, summary.body AS body, summary.sum AS sum, summary.mac AS mac,
       CASE WHEN summary.body IS NULL THEN event.body WHEN NOT json_valid(summary.body) THEN event.body
         WHEN summary.body ->> 'until' > ? THEN event.body END AS whole,
       event.sum AS wholeSum, event.mac AS wholeMac
     FROM event LEFT JOIN event_summary AS summary ON summary.id = event.id ORDER BY event.rowid`,
  );
  for (const row of rows.iterate(at)) {
    const { id = null, whole = null, wholeSum = null, wholeMac = null } = row;
    const broken =
      whole === null
        ? readBody(from, "event_summary", row, (body) => tracked.push(JSON.parse(body)))
        : (brokenSummary(row) ??
          readBody(from, "event", { id, body: whole, sum: wholeSum, mac: wholeMac }, (body) => {
            const known = eventIn(body);
            if (row["body"] !== null) return tracked.push(known);
            const missing = summaryOf(known, body.length);
            made.push(missing);
            return tracked.push(missing.until <= at ? missing : known);
          }));
    if (broken !== null) return broken;
  }
  if (made.length > 0) storeSummaries(connection, from.trust.siteKey, made);
  return tracked;
}

function storeSummary(put: Connection["putSummary"], siteKey: Buffer, summary: EventSummary): void {
  const { id } = summary;
  put.run(id, ...signed(siteKey, "event_summary", id, JSON.stringify(summary)));
}

/** A flipped bit. The HMAC of a summary counts only where the summary is used in place of its event. */
const brokenSummary = (row: Record<string, SQLOutputValue>): Fault | null =>
  row["body"] === null || storedBody("event_summary", row).isWhole
    ? null
    : changed("event_summary", String(row["id"]));

/** Stores new summaries. On a full disk this is repeated at the next start. Throws other SQLite errors. */
function storeSummaries(
  { database, putSummary }: Connection,
  siteKey: Buffer,
  summaries: readonly EventSummary[],
): void {
  try {
    database.exec("BEGIN IMMEDIATE");
    for (const summary of summaries) storeSummary(putSummary, siteKey, summary);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    if (faultOf(error).kind !== "full") throw error;
  }
}
