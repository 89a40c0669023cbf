import {
  type RecordRow,
  type AuditEntry,
  type AuditRow,
  type AuditKind,
  entriesIn,
} from "../domain/audit.ts";
import { isOverruled } from "../domain/reason.ts";
import type { AuditQuery } from "../domain/store.ts";
import { type EventId, type Windows, instant, chargerId, vehicleId, eventId } from "../domain/units.ts";
import type { Cells, ChainRow } from "./chain.ts";
import { storedWords, shownWords, shownFacts } from "./decisionFacts.ts";

/** SQLite stores no lone surrogate: the hashed text must equal the text that is read back. */
const text = (value: string | null): string | null => value?.toWellFormed() ?? null;

/** An entry as stored under `seq`. */
export const cellsOf = (seq: number, entry: AuditEntry): Cells => [
  seq,
  entry.at,
  entry.kind,
  text(entry.charger),
  text(entry.vehicle),
  text(entry.event),
  text(entry.command),
  storedWords(entry).toWellFormed(),
];

/** Written out member by member: a spread per row would take most of the time of a large commit. */
export const numbered = (entry: AuditEntry, seq: number, hash: string): AuditRow => ({
  seq,
  at: entry.at,
  kind: entry.kind,
  charger: entry.charger,
  vehicle: entry.vehicle,
  event: entry.event,
  command: entry.command,
  words: entry.words,
  facts: entry.facts,
  hash,
});

/** A row as the rest of the program reads it. */
export function auditRow({ cells, facts, hash }: ChainRow): AuditRow {
  const [seq, at, kind, charger, vehicle, event, command, words] = cells;
  const entry: AuditEntry = {
    at: instant(at),
    // Every row was written with an AuditKind.
    kind: kind as AuditKind,
    charger: charger === null ? null : chargerId(charger),
    vehicle: vehicle === null ? null : vehicleId(vehicle),
    event: event === null ? null : eventId(event),
    command,
    words,
    facts: JSON.parse(facts),
  };
  return { seq, ...entry, words: shownWords(entry), facts: shownFacts(entry), hash };
}

/**
 * The entries of these rows, at most `limit`. A page ends before a row of several entries if it has no room for all of
 * them. A row that is larger than the limit is cut.
 */
export function entriesOfPage(rows: readonly AuditRow[], query: AuditQuery): readonly AuditRow[] {
  const { charger, notAfter, newest = false, limit = 1000, part = null } = query;
  const found: AuditRow[] = [];
  for (const row of rows) {
    const entries = entriesIn(row);
    const read = row.seq === query.after ? (part ?? 0) : 0;
    const matching = entries
      .map((entry, index) => ({ entry, part: index + 1 }))
      .slice(read)
      .filter(({ entry }) => charger === undefined || entry.charger === charger)
      .filter(({ entry }) => notAfter === undefined || entry.at <= notAfter);
    if (found.length > 0 && found.length + matching.length > limit) break;
    const inOrder = newest ? matching.toReversed() : matching;
    const isCut = !newest && matching.length > limit;
    for (const [index, { entry, part: upTo }] of inOrder.slice(0, limit).entries())
      found.push(isCut && index === limit - 1 ? { ...entry, part: upTo } : entry);
    if (found.length >= limit) break;
  }
  return found;
}

/** A row of an operator, the daemon or an outage concerns the event if it names one of its chargers, or none. */
export function concerns(
  row: RecordRow,
  event: EventId,
  chargers: ReadonlySet<string | null>,
  windows: Windows,
): boolean {
  if (row.event === event) return true;
  return row.kind === "decision"
    ? isOverruled(event, row, windows)
    : row.charger === null || chargers.has(row.charger);
}
