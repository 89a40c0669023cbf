import type { SQLOutputValue } from "node:sqlite";

import { type KnownEvent, type EventSummary, type TrackedEvent, summaryOf } from "../../domain/event.ts";
import type { EventId, Instant } from "../../domain/units.ts";
import { eventBody, eventIn } from "../bodies.ts";
import type { Fault } from "../fault.ts";
import { changed, signed, readBody, readSome, storedBody, type Source } from "./bodies.ts";
import type { Connection } from "./connection.ts";
import { faultOf } from "./fault.ts";

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

function storeSummary(put: Connection["putSummary"], siteKey: Buffer, summary: EventSummary): void {
  const { id } = summary;
  put.run(id, ...signed(siteKey, "event_summary", id, JSON.stringify(summary)));
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
