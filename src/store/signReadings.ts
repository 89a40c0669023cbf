import { authenticate } from "./authentic.ts";
import { metaValue, type Connection } from "./connection.ts";
import { readingMac, rowOf } from "./readings.ts";

/** The loop stands still meanwhile, ms. */
const STEP_MS = 20;
/** Rows of one look at the clock. */
const BATCH = 500;

/** Stored readings of an earlier version have no HMAC; which ones those are must not be for anyone to choose. */
const sealedMinute = (siteKey: Buffer, minute: number): string =>
  `${minute} ${authenticate(siteKey, "readings signed after", String(minute))}`;

/** The last minute that may hold readings without an HMAC; null: none does. */
export function unsignedThrough(connection: Connection, siteKey: Buffer): number | null {
  const stored = metaValue(connection, "readingsBefore");
  const minute = Number.parseInt(stored ?? "", 10);
  return stored === sealedMinute(siteKey, minute) ? minute : null;
}

/** Once, in a state of an earlier version: all readings so far are taken as they are. */
export function takeOverReadings(connection: Connection, siteKey: Buffer): void {
  const last = connection.database.prepare("SELECT max(minute) AS minute FROM reading").get()?.["minute"];
  if (typeof last === "number") connection.putMeta.run("readingsBefore", sealedMinute(siteKey, last));
}

/**
 * One small step of signing those, the newest first, as millions of them would keep a start waiting. To be called again
 * and again, within a transaction. Throws SQLite errors.
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
