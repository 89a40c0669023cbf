import type { Reading } from "../../domain/reading.ts";
import type { ChargersAt, KeptReadings, OnForeign } from "../../domain/store.ts";
import {
  type ChargerId,
  chargerId,
  type Instant,
  instant,
  type Millis,
  type VehicleId,
  type Window,
} from "../../domain/units.ts";
import {
  dayOf,
  mergedRow,
  minuteOf,
  namedRow,
  readingMac,
  type ReadingRow,
  readingRows,
  readingsIn,
} from "../readingRow.ts";
import { column, type Row, type SiteDatabase } from "./database.ts";

const KEY = "(minute bigint, charger text, at bigint, delay bigint)";

const keyOf = ([minute, charger, at, delay]: ReadingRow): string => [minute, charger, at, delay].join(" ");
export const rowIn = (row: Row): ReadingRow => JSON.parse(String(row["body"]));

/** True: we wrote this row, and its columns have what its text has. */
export function isOurReading(siteKey: Buffer, row: Row): boolean {
  const found = rowIn(row);
  const [minute, charger, at, delay] = found;
  return (
    row["mac"] instanceof Uint8Array &&
    readingMac(siteKey, found).equals(row["mac"]) &&
    [row["minute"], row["charger"], row["at"], row["delay"]].join("\n") ===
      [minute, column(String(charger)), at, delay].join("\n")
  );
}

/** Stores readings. A message that is stored already gets the values that it lacks. Throws errors of the database. */
export async function putReadings(
  { database, site, siteKey }: SiteDatabase,
  epoch: number,
  readings: readonly Reading[],
): Promise<void> {
  const rows = new Map<string, ReadingRow>();
  for (const row of readingRows(readings)) {
    const known = rows.get(keyOf(row));
    rows.set(keyOf(row), known === undefined ? row : mergedRow(known, row));
  }
  const keys = [...rows.values()].map(([minute, charger, at, delay]) => ({
    minute,
    charger: column(String(charger)),
    at,
    delay,
  }));
  const stored = await database.query(
    `SELECT reading.* FROM reading JOIN json_to_recordset($2::json) AS x ${KEY} USING (minute, charger, at, delay)
     WHERE site = $1`,
    [site, JSON.stringify(keys)],
  );
  for (const row of stored) {
    if (!isOurReading(siteKey, row)) continue;
    const before = rowIn(row);
    const now = rows.get(keyOf(before));
    if (now !== undefined) rows.set(keyOf(before), mergedRow(before, now));
  }
  const values = [...rows.values()].map((row) => {
    const [minute, charger, at, delay, vehicle = null] = row;
    return {
      minute,
      charger: column(String(charger)),
      at,
      delay,
      vehicle: vehicle === null ? null : column(String(vehicle)),
      body: JSON.stringify(row),
      mac: `\\x${readingMac(siteKey, row).toString("hex")}`,
    };
  });
  const seats = new Map(
    values
      .filter(({ vehicle }) => vehicle !== null)
      .map(({ at, vehicle, charger }) => {
        const seat = { day: dayOf(Number(at)), vehicle, charger };
        return [JSON.stringify(seat), seat];
      }),
  );
  await database.query(PUT, [
    site,
    epoch,
    JSON.stringify(values),
    JSON.stringify([...seats.values()]),
    values.length - stored.length,
  ]);
}

const PUT = `
WITH led AS (
  UPDATE site SET readings = readings + $5 WHERE id = $1 AND epoch = $2 RETURNING id
), seats AS (
  INSERT INTO seat SELECT led.id, x.* FROM led, json_to_recordset($4::json) AS x (day bigint, vehicle text, charger text)
  ON CONFLICT DO NOTHING
)
INSERT INTO reading SELECT led.id, x.* FROM led, json_to_recordset($3::json) AS x (
  minute bigint, charger text, at bigint, delay bigint, vehicle text, body text, mac bytea)
ON CONFLICT (site, minute, charger, at, delay) DO UPDATE SET vehicle = excluded.vehicle, body = excluded.body, mac = excluded.mac`;

/** The index is by minute, then charger. A scan of the minutes reads the rows of all chargers. */
const SCANNED = `SELECT * FROM reading WHERE site = $1 AND minute BETWEEN $2 AND $3 AND charger = ANY ($4::text[])
  AND at >= $5 AND at < $6 ORDER BY at, delay`;

/**
 * A search of each minute for each charger, for many windows at once: $2 charger, $3 and $4 minutes, $5 and $6 time of each.
 * OFFSET keeps the planner from a scan.
 */
const SEARCHED = `SELECT asked.n, reading.*
  FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    WITH ORDINALITY AS asked (charger, first, last, since, until, n)
  CROSS JOIN LATERAL generate_series(
    greatest(asked.first, (SELECT min(minute) FROM reading WHERE site = $1)),
    least(asked.last, (SELECT max(minute) FROM reading WHERE site = $1))) AS m (minute)
  CROSS JOIN LATERAL (SELECT * FROM reading WHERE site = $1 AND minute = m.minute AND charger = asked.charger
    AND at >= asked.since AND at < asked.until OFFSET 0) AS reading
  ORDER BY asked.n, reading.at, reading.delay`;

/** Chargers for which searches are faster than a scan, at a site of twenty times as many. */
const SEARCHED_CHARGERS = 4;

const isScanned = ({ chargers }: ChargersAt): boolean => chargers.length > SEARCHED_CHARGERS;

/** Readings of these windows, ordered by time for each charger. See `Store.readingsIn`. */
export async function queryReadings(
  site: SiteDatabase,
  windows: readonly ChargersAt[],
  onForeign: OnForeign,
  pause: () => Promise<void>,
): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  for (const some of windows.some(isScanned) ? windows.map((window) => [window]) : [windows])
    for (const { charger, rows } of await (some.some(isScanned) ? scanned : searched)(site, some)) {
      for (const row of rows)
        if (isOurReading(site.siteKey, row))
          for (const reading of readingsIn(charger, namedRow(rowIn(row)))) readings.push(reading);
        else onForeign({ charger, at: instant(Number(row["at"])) });
      await pause();
    }
  return readings;
}

/** Stored rows of one charger in one window. */
interface ChargerRows {
  readonly charger: ChargerId;
  readonly rows: readonly Row[];
}

async function scanned(
  { database, site }: SiteDatabase,
  [window]: readonly ChargersAt[],
): Promise<readonly ChargerRows[]> {
  if (window === undefined || window.from >= window.until) return [];
  const { chargers, from, until } = window;
  const names = chargers.map(column);
  const rows = await database.query(SCANNED, [site, minuteOf(from), minuteOf(until), names, from, until]);
  const byCharger = Map.groupBy(rows, (row) => String(row["charger"]));
  return chargers.map((charger) => ({ charger, rows: byCharger.get(column(charger) ?? "") ?? [] }));
}

async function searched(
  { database, site }: SiteDatabase,
  windows: readonly ChargersAt[],
): Promise<readonly ChargerRows[]> {
  const asked = windows
    .filter(({ from, until }) => from < until)
    .flatMap(({ chargers, from, until }) => chargers.map((charger) => ({ charger, from, until })));
  if (asked.length === 0) return [];
  const rows = await database.query(SEARCHED, [
    site,
    asked.map(({ charger }) => column(charger)),
    asked.map(({ from }) => minuteOf(from)),
    asked.map(({ until }) => minuteOf(until)),
    asked.map(({ from }) => from),
    asked.map(({ until }) => until),
  ]);
  const found = Map.groupBy(rows, (row) => Number(row["n"]));
  return asked.map(({ charger }, index) => ({ charger, rows: found.get(index + 1) ?? [] }));
}

/** Chargers that a vehicle was on, for each window on the days that it touches. */
export async function querySeats(
  { database, site }: SiteDatabase,
  vehicle: VehicleId,
  windows: readonly Window[],
): Promise<readonly (readonly ChargerId[])[]> {
  const days = windows.map(({ from, until }) => ({ first: dayOf(from), last: dayOf(until) }));
  const rows = await database.query(
    `SELECT n, charger FROM unnest($3::bigint[], $4::bigint[]) WITH ORDINALITY AS asked (first, last, n)
     JOIN seat ON site = $1 AND vehicle = $2 AND day BETWEEN first AND last ORDER BY n, day, charger`,
    [site, column(vehicle), days.map(({ first }) => first), days.map(({ last }) => last)],
  );
  const found = Map.groupBy(rows, (row) => Number(row["n"]));
  return windows.map((_, index) => [
    ...new Set((found.get(index + 1) ?? []).map(({ charger }) => chargerId(String(charger)))),
  ]);
}

/** Rows that one step of pruning deletes. */
const STEP = 5_000;
/** Readings older than eight days serve baselines, which need one per minute. */
const FINE_MINUTES = 8 * 24 * 60;
/** Minutes that one step thins out. */
const THINNED = 60;
/** Closed reports that stay, with their bodies. */
const MOST_REPORTS = 10_000;

/** A short step of pruning. See `Store.pruneReadings`. Throws errors of the database. */
export async function pruneReadings(
  { database, site }: SiteDatabase,
  epoch: number,
  now: Instant,
  keep: Millis | null,
  most: number,
): Promise<KeptReadings> {
  const [state] = await database.query("SELECT readings, thinned_minute FROM site WHERE id = $1", [site]);
  const rows = Number(state?.["readings"] ?? 0);
  const thinned = Number(state?.["thinned_minute"] ?? 0);
  const excess = Math.max(0, Math.min(STEP, rows - most));
  const tooOld = keep === null ? -1 : minuteOf(now - keep);
  const coarse = keep === null ? -1 : minuteOf(now) - FINE_MINUTES;
  const [oldest] = await database.query(
    "SELECT min(minute) AS minute FROM reading WHERE site = $1 AND minute >= $2",
    [site, thinned],
  );
  const from = Number(oldest?.["minute"] ?? coarse);
  const through = Math.min(coarse, from + THINNED);
  const [pruned] = await database.query(PRUNE, [
    site,
    epoch,
    tooOld,
    excess,
    from,
    through,
    now,
    keep === null ? -1 : Math.floor(tooOld / 1440),
  ]);
  const leftEarly = Number(pruned?.["early"] ?? 0) > 0;
  return { rows: rows - Number(pruned?.["gone"] ?? 0), leftEarly };
}

/** $3 minute before which readings are too old, $4 the excess, $5 and $6 the minutes to thin out, $8 the last day of seats. */
const PRUNE = `
WITH oldest AS (
  SELECT minute, charger, at, delay, minute >= $3 AS early FROM reading
  WHERE site = $1 ORDER BY minute LIMIT greatest($4::int, ${STEP})
), due AS (
  SELECT minute, charger, at, delay, early FROM (SELECT *, row_number() OVER (ORDER BY minute) AS n FROM oldest) AS x
  WHERE NOT early OR n <= $4
), gone AS (
  DELETE FROM reading USING due, site WHERE site.id = $1 AND site.epoch = $2 AND reading.site = $1
  AND (reading.minute, reading.charger, reading.at, reading.delay) = (due.minute, due.charger, due.at, due.delay)
  RETURNING due.early
), thin AS (
  DELETE FROM reading USING site WHERE site.id = $1 AND site.epoch = $2 AND reading.site = $1
  AND reading.minute >= $5 AND reading.minute < $6 AND reading.minute >= $3
  AND reading.body::json ->> 13 IS NULL
  AND NOT EXISTS (SELECT 1 FROM due WHERE due.minute = reading.minute)
  AND EXISTS (SELECT 1 FROM reading AS later WHERE later.site = $1 AND later.minute = reading.minute
    AND later.charger = reading.charger AND later.at > reading.at
    AND later.vehicle IS NOT DISTINCT FROM reading.vehicle
    AND (later.body::json ->> 7 IS NOT NULL OR reading.body::json ->> 7 IS NULL))
  RETURNING 1
), seats AS (
  DELETE FROM seat USING site WHERE site.id = $1 AND site.epoch = $2 AND seat.site = $1 AND seat.day < $8
), reports AS (
  DELETE FROM body USING site WHERE site.id = $1 AND site.epoch = $2 AND body.site = $1 AND body.kind = 'report'
  AND NOT body.open AND body.ord <= (SELECT ord FROM body WHERE site = $1 AND kind = 'report'
    ORDER BY ord DESC OFFSET ${MOST_REPORTS} LIMIT 1)
  RETURNING body.id
), report_bodies AS (
  DELETE FROM body USING reports WHERE body.site = $1 AND body.kind = 'report_body' AND body.id = reports.id
), counted AS (
  SELECT (SELECT count(*) FROM gone) AS gone, (SELECT count(*) FROM gone WHERE early) AS early,
    (SELECT count(*) FROM thin) AS thinned
), kept AS (
  UPDATE site SET readings = readings - gone - thinned, thinned_minute = greatest(thinned_minute, $6), alive_at = $7
  FROM counted WHERE id = $1 AND epoch = $2
)
SELECT gone + thinned AS gone, early FROM counted`;
