import type { DatabaseSync, SQLOutputValue } from "node:sqlite";

import type { Reading } from "../../domain/reading.ts";
import type { OnForeign, KeptReadings } from "../../domain/store.ts";
import {
  chargerId,
  type ChargerId,
  type Instant,
  instant,
  type VehicleId,
  type Millis,
  hours,
} from "../../domain/units.ts";
import { authenticate } from "../chain.ts";
import {
  minuteOf,
  dayOf,
  readingRows,
  mergedRow,
  type ReadingRow,
  COLUMNS,
  readingMac,
  text,
  readingsIn,
} from "../readingRow.ts";
import { type Connection, metaValue, prepared } from "./connection.ts";

/**
 * Stores readings. Those of one message share a row and one HMAC, because time and charger take most bytes.
 * Returns the number of new rows. Throws SQLite errors.
 */
export function putReadings(database: DatabaseSync, siteKey: Buffer, readings: readonly Reading[]): number {
  const insert = prepared(
    database,
    "INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  let added = 0;
  const putSeat = prepared(database, "INSERT OR IGNORE INTO seat VALUES (?, ?, ?)");
  for (const row of readingRows(readings)) {
    const isNew = insert.run(...row, readingMac(siteKey, row)).changes > 0;
    if (isNew) added += 1;
    else amend(database, siteKey, row);
    const [, charger = null, at, , vehicle = null] = row;
    if (vehicle !== null) putSeat.run(dayOf(Number(at)), vehicle, charger);
  }
  return added;
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

export const rowOf = (row: Record<string, SQLOutputValue>): ReadingRow => [
  Number(row["minute"]),
  ...COLUMNS.map((name) => {
    const value = row[name];
    return typeof value === "string" || typeof value === "number" ? value : null;
  }),
];

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

/** Readings of an earlier version have no HMAC. The limit is authenticated, so that it cannot be extended to edited rows. */
const sealedMinute = (siteKey: Buffer, minute: number): string =>
  `${minute} ${authenticate(siteKey, "readings signed after", String(minute))}`;

/** The last minute that may hold readings without an HMAC. Null: none. */
export function unsignedThrough(connection: Connection, siteKey: Buffer): number | null {
  const stored = metaValue(connection, "readingsBefore");
  if (stored === null) return null;
  const minute = Number.parseInt(stored, 10);
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

/** Charger readings may arrive a week late. Older ones only serve baselines, which need one per minute. */
const FINE = hours(8 * 24);
/**
 * Rows deleted by one statement: a minute of 20,000 chargers has 120,000. A charger's rows of one minute are
 * deleted together.
 */
export const PRUNE_PAGE = 1_000;

/**
 * A short step of pruning. Readings older than `keep` are deleted. Of those older than eight days, only the
 * last of each minute stays. Call it repeatedly, within a transaction. `keep` null: the clock is unconfirmed,
 * so nothing is too old, and only the excess is deleted. Throws SQLite errors.
 */
export function pruneReadings(
  connection: Connection,
  now: Instant,
  keep: Millis | null,
  most = Infinity,
): KeptReadings {
  const { database } = connection;
  const oldest = prepared(database, "SELECT min(minute) AS minute FROM reading");
  const next = prepared(database, "SELECT min(minute) AS minute FROM reading WHERE minute >= ?");
  const page = prepared(
    database,
    `SELECT charger FROM reading WHERE minute = ? AND charger > ? ORDER BY charger LIMIT 1 OFFSET ${PRUNE_PAGE - 1}`,
  );
  const drop = prepared(database, "DELETE FROM reading WHERE minute = ? AND charger <= ?");
  const dropRest = prepared(database, "DELETE FROM reading WHERE minute = ?");
  const thin = prepared(
    database,
    `DELETE FROM reading WHERE minute = ?1 AND charger > ?2 AND (?3 IS NULL OR charger <= ?3) AND told IS NULL AND EXISTS (
       SELECT 1 FROM reading AS later
       WHERE later.minute = reading.minute AND later.charger = reading.charger AND later.at > reading.at
       AND later.vehicle IS reading.vehicle AND (later.energy IS NOT NULL OR reading.energy IS NULL))`,
  );
  const [tooOld, coarse] =
    keep === null ? [-Infinity, -Infinity] : [minuteOf(now - keep), minuteOf(now - FINE)];
  let count = numberIn(connection, "readings");
  let thinned = numberIn(connection, "readingsThinned");
  /** The chargers of that minute up to this one are done. */
  let through = String(connection.getMeta.get("readingsThinnedThrough")?.["value"] ?? "");
  let leftEarly = false;
  const began = performance.now();
  while (performance.now() - began < STEP_MS) {
    const first = oldest.get()?.["minute"];
    if (typeof first === "number" && (first < tooOld || count > most)) {
      leftEarly ||= first >= tooOld;
      const last = page.get(first, "")?.["charger"];
      count -= Number((last === undefined ? dropRest.run(first) : drop.run(first, last)).changes);
      continue;
    }
    const minute = next.get(thinned)?.["minute"];
    if (typeof minute !== "number" || minute >= coarse) break;
    if (minute > thinned) through = "";
    const last = page.get(minute, through)?.["charger"] ?? null;
    count -= Number(thin.run(minute, through, last).changes);
    thinned = last === null ? minute + 1 : minute;
    through = last === null ? "" : String(last);
  }
  if (keep !== null) prepared(database, "DELETE FROM seat WHERE day < ?").run(Math.floor(tooOld / 1440));
  connection.putMeta.run("readings", String(count));
  connection.putMeta.run("readingsThinned", String(thinned));
  connection.putMeta.run("readingsThinnedThrough", through);
  // This commit runs every minute anyway. After a crash, `alive` shows how long nothing ran.
  connection.putMeta.run("alive", String(now));
  return { rows: count, leftEarly };
}

/** Counting millions of rows takes seconds, so the number is stored. */
export function countReadings(connection: Connection, added: number): void {
  connection.putMeta.run("readings", String(numberIn(connection, "readings") + added));
}

const numberIn = ({ getMeta }: Connection, name: "readings" | "readingsThinned"): number =>
  Number(getMeta.get(name)?.["value"] ?? 0);
