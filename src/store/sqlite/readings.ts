import { createHmac } from "node:crypto";
import type { DatabaseSync, SQLOutputValue } from "node:sqlite";

import type { Measured, MeasuredKind, Reading, Stated, CommandReading } from "../../domain/reading.ts";
import type { OnForeign } from "../../domain/store.ts";
import type { ChargerState } from "../../domain/telemetry.ts";
import {
  chargerId,
  type ChargerId,
  type Instant,
  instant,
  vehicleId,
  type VehicleId,
} from "../../domain/units.ts";
import { authenticate } from "./chain.ts";
import { type Connection, metaValue } from "./connection.ts";

const MINUTE = 60_000;
const DAY = 86_400_000;
/** Part of the primary key: readings of one minute lie together. */
export const minuteOf = (at: number): number => Math.floor(at / MINUTE);
export const dayOf = (at: number): number => Math.floor(at / DAY);

const MEASURED: readonly MeasuredKind[] = ["power", "energy", "current", "voltage", "soc", "limit"];
/** Bits of the column `marks`; one for each implausible kind follows. */
const OWN_CLOCK = 1;
const implausible = (kind: MeasuredKind): number => 2 << MEASURED.indexOf(kind);

/**
 * Stores readings. Those of one message share a row and one HMAC, because time and charger take most bytes.
 * Returns the number of new rows. Throws SQLite errors.
 */
export function putReadings(database: DatabaseSync, siteKey: Buffer, readings: readonly Reading[]): number {
  const insert = database.prepare(
    "INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  let added = 0;
  const putSeat = database.prepare("INSERT OR IGNORE INTO seat VALUES (?, ?, ?)");
  for (const row of readingRows(readings)) {
    const isNew = insert.run(...row, readingMac(siteKey, row)).changes > 0;
    if (isNew) added += 1;
    else amend(database, siteKey, row);
    const [, charger = null, at, , vehicle = null] = row;
    if (vehicle !== null) putSeat.run(dayOf(Number(at)), vehicle, charger);
  }
  return added;
}

/** The rows of these readings: one for each message. */
export function readingRows(readings: readonly Reading[]): readonly ReadingRow[] {
  const groups = Map.groupBy(readings, ({ charger, at, receivedAt }) => `${at} ${receivedAt} ${charger}`);
  return [...groups.values()].map((group) => {
    const [first] = group as [Reading, ...Reading[]];
    const { charger, vehicle, at, receivedAt } = first;
    const state = group.find(({ kind }) => kind === "state")?.value;
    const command = group.find((reading) => reading.kind === "setpoint");
    const marks = group.reduce((bits, reading) => bits | markOf(reading), 0);
    const values = MEASURED.map((wanted) => {
      const value = group.find(({ kind }) => kind === wanted)?.value;
      return typeof value === "number" ? value : null;
    });
    const commandText =
      command === undefined ? null : JSON.stringify([command.value, command.until, command.event]);
    return [
      minuteOf(at),
      text(charger),
      at,
      receivedAt - at,
      vehicle === null ? null : text(vehicle),
      marks,
      ...values,
      typeof state === "string" ? state : null,
      commandText,
    ];
  });
}

/** Adds values to a stored message. A message that another program changed is replaced, not signed. */
function amend(database: DatabaseSync, siteKey: Buffer, row: ReadingRow): void {
  const [minute, charger = null, at = null, delay = null] = row;
  const found = database
    .prepare("SELECT * FROM reading WHERE minute = ? AND charger = ? AND at = ? AND delay = ?")
    .get(minute, charger, at, delay);
  const stored = found === undefined ? null : rowOf(found);
  const isOurs = stored !== null && isSame(found?.["mac"], readingMac(siteKey, stored));
  const merged = stored === null || !isOurs ? row : mergedRow(stored, row);
  database
    .prepare("INSERT OR REPLACE INTO reading VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    .run(...merged, readingMac(siteKey, merged));
}

const MARKS = 5;
export function mergedRow(stored: ReadingRow, [minute, ...rest]: ReadingRow): ReadingRow {
  const cells = rest.map((value, index) => {
    const before = stored[index + 1] ?? null;
    return index + 1 === MARKS ? Number(value) | Number(before) : (value ?? before);
  });
  return [minute, ...cells];
}

/** The columns in their order, without the HMAC. */
export type ReadingRow = readonly [minute: number, ...(string | number | null)[]];

/** `limit` is an SQL keyword. */
const columnOf = (kind: MeasuredKind): string => (kind === "limit" ? "level" : kind);

const COLUMNS = ["charger", "at", "delay", "vehicle", "marks", ...MEASURED.map(columnOf), "state", "told"];

/** A row by the names of its columns. */
export const namedRow = ([minute, ...cells]: ReadingRow): Record<string, string | number | null> => ({
  minute,
  ...Object.fromEntries(COLUMNS.map((name, index) => [name, cells[index] ?? null])),
});

const rowOf = (row: Record<string, SQLOutputValue>): ReadingRow => [
  Number(row["minute"]),
  ...COLUMNS.map((name) => {
    const value = row[name];
    return typeof value === "string" || typeof value === "number" ? value : null;
  }),
];

/** Half of an HMAC is enough, and each row has one. */
const MAC_BYTES = 16;
export const readingMac = (siteKey: Buffer, row: ReadingRow): Buffer =>
  createHmac("sha256", siteKey)
    .update(`reading\n${JSON.stringify(row)}`)
    .digest()
    .subarray(0, MAC_BYTES);

const isSame = (stored: SQLOutputValue | undefined, mac: Buffer): boolean =>
  stored instanceof Uint8Array && mac.equals(stored);

/** Key and limit for the checks of stored readings. */
export interface ReadingTrust {
  readonly siteKey: Buffer;
  /** Rows up to and including this minute may lack an HMAC: an earlier version wrote them. Null: all have one. */
  readonly unsignedThrough: number | null;
}

/** True: we wrote this row. */
export function isOurReading(
  { siteKey, unsignedThrough }: ReadingTrust,
  row: Record<string, SQLOutputValue>,
): boolean {
  if (row["mac"] === null) return unsignedThrough !== null && Number(row["minute"]) <= unsignedThrough;
  return isSame(row["mac"], readingMac(siteKey, rowOf(row)));
}

/** SQLite stores no lone surrogate: the stored id must equal the queried id. */
const text = (id: string): string => id.toWellFormed();

function markOf(reading: Reading): number {
  if (reading.quality === "received") return OWN_CLOCK;
  const { kind } = reading;
  if (reading.quality === "good" || kind === "state" || kind === "setpoint") return 0;
  return implausible(kind);
}

/**
 * Readings of these chargers in [from, until), ordered by time for each charger. Rows that another program
 * changed are left out and passed to `onForeign`. Throws SQLite errors.
 */
export function queryReadings(
  { readingSpan, readings }: Pick<Connection, "readingSpan" | "readings">,
  { trust, onForeign }: { readonly trust: ReadingTrust; readonly onForeign: OnForeign },
  chargers: Iterable<ChargerId>,
  from: Instant,
  until: Instant,
): readonly Reading[] {
  const span = readingSpan.get();
  if (typeof span?.["first"] !== "number" || typeof span["last"] !== "number" || from >= until) return [];
  // Bounded by the stored minutes: an event "until cancelled" (P9999Y) has five thousand million.
  const [first, last] = [Math.max(minuteOf(from), span["first"]), Math.min(minuteOf(until), span["last"])];
  if (first > last) return [];
  return [...chargers].flatMap((charger) =>
    readings.all(first, last, text(charger), from, until).flatMap((row) => {
      if (isOurReading(trust, row)) return readingsIn(charger, row);
      onForeign({ charger, at: instant(Number(row["at"])) });
      return [];
    }),
  );
}

export function readingsIn(charger: ChargerId, row: Record<string, SQLOutputValue>): readonly Reading[] {
  const at = instant(Number(row["at"]));
  const vehicle = row["vehicle"] === null ? null : vehicleId(String(row["vehicle"]));
  const receivedAt = instant(at + Number(row["delay"]));
  const stamp = { charger, vehicle, at, receivedAt };
  const marks = Number(row["marks"]);
  const quality = (marks & OWN_CLOCK) === 0 ? "good" : "received";
  const measured = MEASURED.flatMap((kind): Measured[] => {
    const value = row[columnOf(kind)];
    if (typeof value !== "number") return [];
    const doubt = (marks & implausible(kind)) === 0 ? quality : "implausible";
    return [{ ...stamp, kind, value, source: kind === "soc" ? "vehicle" : "charger", quality: doubt }];
  });
  const { state, told: command } = row;
  // Only values of a Stated reading were written there.
  const value = state as ChargerState;
  const stated: Stated = { ...stamp, kind: "state", value, source: "charger", quality };
  return [
    ...measured,
    ...(state === null ? [] : [stated]),
    ...(typeof command === "string" ? [commandReadingIn(command, stamp)] : []),
  ];
}

function commandReadingIn(
  stored: string,
  stamp: Pick<CommandReading, "charger" | "vehicle" | "at" | "receivedAt">,
): CommandReading {
  const [value, until, event]: [CommandReading["value"], CommandReading["until"], CommandReading["event"]] =
    JSON.parse(stored);
  return { ...stamp, kind: "setpoint", value, until, event, source: "command", quality: "good" };
}

/** Chargers that a vehicle was on, on the days that [from, until) touches. Throws SQLite errors. */
export const querySeats = (
  { seats }: Pick<Connection, "seats">,
  vehicle: VehicleId,
  from: Instant,
  until: Instant,
): readonly ChargerId[] =>
  seats.all(text(vehicle), dayOf(from), dayOf(until)).map(({ charger }) => chargerId(String(charger)));

/** Length of a step, ms. It blocks the event loop. */
const STEP_MS = 20;
/** Rows between two checks of the clock. */
const BATCH = 500;

/** Readings of an earlier version have no HMAC. The limit is authenticated, so that nobody can extend it to edited rows. */
const sealedMinute = (siteKey: Buffer, minute: number): string =>
  `${minute} ${authenticate(siteKey, "readings signed after", String(minute))}`;

/** The last minute that may hold readings without an HMAC. Null: none. */
export function unsignedThrough(connection: Connection, siteKey: Buffer): number | null {
  const stored = metaValue(connection, "readingsBefore");
  const minute = Number.parseInt(stored ?? "", 10);
  return stored === sealedMinute(siteKey, minute) ? minute : null;
}

/** Runs once, in a state of an earlier version: all stored readings are accepted as they are. */
export function upgradeReadings(connection: Connection, siteKey: Buffer): void {
  const last = connection.database.prepare("SELECT max(minute) AS minute FROM reading").get()?.["minute"];
  if (typeof last === "number") connection.putMeta.run("readingsBefore", sealedMinute(siteKey, last));
}

/**
 * A short step of signing old readings, newest first: signing millions at once would delay a start. Call it
 * repeatedly, within a transaction. Throws SQLite errors.
 */
export function signReadings(connection: Connection, siteKey: Buffer): void {
  const { database } = connection;
  const first = unsignedThrough(connection, siteKey);
  if (first === null) return;
  const newest = database.prepare("SELECT max(minute) AS minute FROM reading WHERE minute <= ?");
  const unsigned = database.prepare(`SELECT * FROM reading WHERE minute = ? AND mac IS NULL LIMIT ${BATCH}`);
  const sign = database.prepare(
    "UPDATE reading SET mac = ? WHERE minute = ? AND charger = ? AND at = ? AND delay = ?",
  );
  const began = performance.now();
  let through = newest.get(first)?.["minute"];
  while (typeof through === "number" && performance.now() - began < STEP_MS) {
    const rows = unsigned.all(through).map(rowOf);
    for (const row of rows) {
      const [minute, charger = null, at = null, delay = null] = row;
      sign.run(readingMac(siteKey, row), minute, charger, at, delay);
    }
    if (rows.length < BATCH) through = newest.get(through - 1)?.["minute"];
  }
  if (typeof through === "number") connection.putMeta.run("readingsBefore", sealedMinute(siteKey, through));
  else database.prepare("DELETE FROM meta WHERE name = 'readingsBefore'").run();
}
