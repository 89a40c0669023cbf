import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { AuditEntry, AuditKind } from "../core/audit.ts";
import { chargerId, eventId, instant, vehicleId } from "../core/units.ts";
import type { Cells, ChainRow } from "./chain.ts";

/** An audit entry with its place in the hash chain. `hash` is hex. */
export interface AuditRow extends AuditEntry {
  readonly seq: number;
  readonly hash: string;
}

type Columns = Record<string, SQLOutputValue>;

/** SQLite stores no lone surrogate: what is hashed must be what will be read back. */
const text = (value: string | null): string | null => value?.toWellFormed() ?? null;
const textOrNull = (value: SQLOutputValue | undefined): string | null =>
  value === null || value === undefined ? null : String(value);

/** An entry as it will be stored under `seq`. */
export const cellsOf = (seq: number, entry: AuditEntry): Cells => [
  seq,
  entry.at,
  entry.kind,
  text(entry.charger),
  text(entry.vehicle),
  text(entry.event),
  text(entry.command),
  entry.words.toWellFormed(),
];

/** Written out: a spread per row is what a commit of many rows would spend its time on. */
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

/** The rows after `after`, oldest first, read one by one. */
export function* chainRows(database: DatabaseSync, after: number): Generator<ChainRow> {
  for (const row of database.prepare("SELECT * FROM audit WHERE seq > ? ORDER BY seq").iterate(after)) {
    yield chainRow(row);
  }
}

/** The next rows after `after`, oldest first, at most so many: none is held open, so that commits go on in between. */
export const chainPage = (database: DatabaseSync, after: number, most: number): readonly ChainRow[] =>
  database.prepare("SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?").all(after, most).map(chainRow);

/** One row of the table `audit`. */
export const chainRow = (row: Columns): ChainRow => ({
  cells: [
    Number(row["seq"]),
    Number(row["at"]),
    String(row["kind"]),
    textOrNull(row["charger"]),
    textOrNull(row["vehicle"]),
    textOrNull(row["event"]),
    textOrNull(row["command"]),
    String(row["words"]),
  ],
  facts: String(row["facts"]),
  hash: String(row["hash"]),
});

/** The same row as the rest of the program reads it. */
export function auditRow({ cells, facts, hash }: ChainRow): AuditRow {
  const [seq, at, kind, charger, vehicle, event, command, words] = cells;
  return {
    seq,
    at: instant(at),
    // The chain holds only what was written as an AuditKind.
    kind: kind as AuditKind,
    charger: charger === null ? null : chargerId(charger),
    vehicle: vehicle === null ? null : vehicleId(vehicle),
    event: event === null ? null : eventId(event),
    command,
    words,
    facts: JSON.parse(facts),
    hash,
  };
}

/** The tables that no chain guards. */
export type BodyTable =
  | "event"
  | "event_summary"
  | "command"
  | "hold"
  | "prices"
  | "duty"
  | "report"
  | "report_body";

/** CRC-32 over table, key, body and HMAC: a page that turns up in another table of the same shape must not pass either. */
export const sumOf = (table: BodyTable, id: string, body: string, mac = ""): number =>
  crc32(mac, crc32(body, crc32(`${table}\n${id}\n`)));
