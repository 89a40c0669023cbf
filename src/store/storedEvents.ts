import type { EventSummary, KnownEvent, TrackedEvent } from "../core/control/known.ts";
import { summaryOf } from "../core/control/summary.ts";
import { type EventId, eventId, type Instant } from "../core/units.ts";
import { signed } from "./bodies.ts";
import type { Connection } from "./connection.ts";
import { eventBody, readEventBody } from "./eventBody.ts";
import { type Fault, faultOf } from "./fault.ts";
import { readBody, readSome, type Source } from "./readBodies.ts";

/** As it was stored; earlier versions counted no descriptors, and kept no anchor of what was withdrawn, nor its last delete. */
export function eventIn(body: string): KnownEvent {
  const known = readEventBody(body);
  return known.kind === "live"
    ? { ...known, descriptors: known.descriptors ?? known.revision.event.reports.length }
    : {
        ...known,
        descriptors: known.descriptors ?? 0,
        anchor: known.anchor ?? null,
        deletedAt: known.deletedAt ?? known.receivedAt,
      };
}

/** Stores an event, and beside it what memory keeps once it is over. Throws SQLite errors. */
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

/** A whole event; null: it is not stored. Throws SQLite errors. */
export function readEvent(from: Source, id: EventId): KnownEvent | Fault | null {
  let known: KnownEvent | null = null;
  return readSome(from, "event", [id], (body) => (known = eventIn(body))) ?? known;
}

/** The summary of an event; null: it is not stored. Throws SQLite errors. */
export function readSummary(from: Source, id: EventId): EventSummary | Fault | null {
  let summary: EventSummary | null = null;
  return readSome(from, "event_summary", [id], (body) => (summary = JSON.parse(body))) ?? summary;
}

/**
 * All events in the order in which they came: a summary of each that is over by `at`, the others whole. An event that
 * is over is not read, unless an earlier version stored no summary of it. Throws SQLite errors.
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
    `SELECT event.id AS id, summary.body AS body, summary.sum AS sum, summary.mac AS mac
     FROM event LEFT JOIN event_summary AS summary ON summary.id = event.id ORDER BY event.rowid`,
  );
  for (const row of rows.iterate()) {
    let summary: EventSummary | null = null;
    const broken =
      row["body"] === null
        ? null
        : readBody(from, "event_summary", row, (body) => (summary = JSON.parse(body)));
    const fault = broken ?? trackOne(from, eventId(String(row["id"])), summary, at, tracked, made);
    if (fault !== null) return fault;
  }
  if (made.length > 0) storeSummaries(connection, from.trust.siteKey, made);
  return tracked;
}

function trackOne(
  from: Source,
  id: EventId,
  summary: EventSummary | null,
  at: Instant,
  tracked: TrackedEvent[],
  made: EventSummary[],
): Fault | null {
  if (summary !== null && summary.until <= at) {
    tracked.push(summary);
    return null;
  }
  return readSome(from, "event", [id], (body) => {
    const known = eventIn(body);
    if (summary !== null) return tracked.push(known);
    const missing = summaryOf(known, body.length);
    made.push(missing);
    return tracked.push(missing.until <= at ? missing : known);
  });
}

/** On a full disk they are made again at the next start. Throws other SQLite errors. */
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
