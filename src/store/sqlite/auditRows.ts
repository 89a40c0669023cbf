import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { crc32 } from "node:zlib";

import type { Alarm } from "../../domain/alarm.ts";
import { entriesIn, type AuditRow } from "../../domain/audit.ts";
import type { PlugIn, SetDeparture } from "../../domain/departure.ts";
import type { PriceSeries } from "../../domain/prices.ts";
import type {
  AuditQuery,
  Broken,
  OldRows,
  OldRowsQuery,
  Quarantined,
  StoredDepartures,
} from "../../domain/store.ts";
import { chargerId, instant, type Instant } from "../../domain/units.ts";
import type { BodyTable } from "../bodies.ts";
import { prepared } from "./connection.ts";
import { auditRow, entriesOfPage, isRare, RARE, type ChainRow } from "../chain.ts";

type Columns = Record<string, SQLOutputValue>;
const textOrNull = (value: SQLOutputValue | undefined): string | null =>
  value === null || value === undefined ? null : String(value);

/** The rows after `after`, oldest first, read one by one. */
export function* chainRows(database: DatabaseSync, after: number): Generator<ChainRow> {
  for (const row of database.prepare("SELECT * FROM audit WHERE seq > ? ORDER BY seq").iterate(after)) {
    yield chainRow(row);
  }
}

/** The next rows after `after`, oldest first, at most `most`. No statement stays open, so commits can run in between. */
export const chainPage = (database: DatabaseSync, after: number, most: number): readonly ChainRow[] =>
  database.prepare("SELECT * FROM audit WHERE seq > ? ORDER BY seq LIMIT ?").all(after, most).map(chainRow);

/** Indexes of `audit`: the rows that each holds, and the column that it finds them by. */
const INDEXES = [
  ["audit_event", "event IS NOT NULL", "event"],
  ["audit_charger", "charger IS NOT NULL", "charger"],
  ["audit_silence", "kind = 'silence'", "kind"],
  ["audit_rare", RARE, "kind"],
] as const;

const UNINDEXED = INDEXES.map(
  ([index, held, column]) =>
    `SELECT seq, '${index}' AS name FROM audit NOT INDEXED
     WHERE seq BETWEEN ?1 AND ?2 AND ${held} AND NOT EXISTS (
       SELECT 1 FROM audit AS found INDEXED BY ${index}
       WHERE found.${held} AND found.${column} = audit.${column} AND found.seq = audit.seq)`,
).join(" UNION ALL ");

/** The first of these rows that an index lacks: no search by that index finds it. Null: there is none. */
export function unindexed(database: DatabaseSync, from: number, through: number): Broken | null {
  const row = prepared(database, `${UNINDEXED} ORDER BY seq LIMIT 1`).get(from, through);
  if (row === undefined) return null;
  const [seq, name] = [Number(row["seq"]), String(row["name"])];
  const reason = `row ${seq} is missing from the index ${name}, so that searches do not find it`;
  return { ok: false, seq, reason };
}

/** SQL for the hash of a row of `audit`, hex. */
export const hashIn = (table: string): string =>
  `CASE WHEN ${table}.digest IS NULL THEN ${table}.hash ELSE lower(hex(${table}.digest)) END`;

/** A row of the table `audit` as the chain reads it. */
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
  hash:
    row["digest"] instanceof Uint8Array ? Buffer.from(row["digest"]).toString("hex") : String(row["hash"]),
});

/**
 * CRC-32 over table, key, body and HMAC. The table is included so that a page of another table with the same
 * columns fails too.
 */
export const sumOf = (table: BodyTable, id: string, body: string, mac = ""): number =>
  crc32(mac, crc32(body, crc32(`${table}\n${id}\n`)));

/**
 * Audit rows that match, at most `limit`. Of a row that names several commands, each is returned. A page ends before
 * such a row if it has no room for the whole, because the next page begins at its `seq`. A row that is larger than the
 * limit is cut, and its last entry has `part` then. Throws SQLite errors if the disk cannot be read.
 */
export function queryAudit(database: DatabaseSync, query: AuditQuery): readonly AuditRow[] {
  const { charger, notAfter, newest = false, limit = 1000, part = null } = query;
  const where = [part === null ? "audit.seq > ?" : "audit.seq >= ?"];
  const values: (string | number)[] = [query.after ?? 0];
  for (const column of ["event", "kind"] as const) {
    const wanted = query[column];
    if (wanted === undefined) continue;
    where.push(`audit.${column} = ?`);
    values.push(wanted);
  }
  if (query.kind !== undefined && isRare(query.kind)) where.push(`audit.${RARE}`);
  if (query.before !== undefined) {
    where.push(query.beforePart === undefined ? "audit.seq < ?" : "audit.seq <= ?");
    values.push(query.before);
  }
  if (notAfter !== undefined) {
    where.push("audit.at <= ?");
    values.push(notAfter);
  }
  const ordered = `ORDER BY seq ${newest ? "DESC" : "ASC"} LIMIT ?`;
  const matching = (from: string, named = ""): string =>
    `SELECT audit.* FROM ${from} WHERE ${named}${where.join(" AND ")} ${ordered}`;
  const rows =
    charger === undefined
      ? prepared(database, matching("audit")).all(...values, limit)
      : database
          .prepare(
            `SELECT * FROM (${matching("audit", "audit.charger = ? AND ")})
             UNION ALL SELECT * FROM (${matching(SHARED_ROWS, "acknowledged.charger = ? AND ")}) ${ordered}`,
          )
          .all(charger, ...values, limit, charger, ...values, limit, limit);
  return entriesOfPage(
    rows.map((row) => auditRow(chainRow(row))),
    query,
  );
}

/** Rows that name several commands, by charger. */
const SHARED_ROWS = "acknowledged JOIN audit ON audit.seq = acknowledged.seq";

/** Acknowledgements of a charger that share a row with others, newest first. Throws SQLite errors. */
function* sharedAcknowledgements(database: DatabaseSync, charger: string): Generator<AuditRow> {
  const rows = prepared(
    database,
    `SELECT audit.* FROM ${SHARED_ROWS} WHERE acknowledged.charger = ? AND json_valid(audit.facts)
     ORDER BY acknowledged.seq DESC`,
  );
  for (const row of rows.iterate(charger))
    for (const entry of entriesIn(auditRow(chainRow(row))).toReversed())
      if (entry.charger === charger) yield entry;
}

/** The newest of them for each charger. A row is read once for all chargers that it names. Throws SQLite errors. */
export function newestAcknowledgements(database: DatabaseSync): (charger: string) => AuditRow | undefined {
  const newest = prepared(database, "SELECT max(seq) AS seq FROM acknowledged WHERE charger = ?");
  const shared = prepared(database, "SELECT * FROM audit WHERE seq = ? AND json_valid(facts)");
  const read = new Map<SQLOutputValue, ReadonlyMap<string | null, AuditRow>>();
  return (charger) => {
    const seq = newest.get(charger)?.["seq"] ?? null;
    if (seq === null) return undefined;
    const row = read.has(seq) ? undefined : shared.get(seq);
    if (row !== undefined)
      read.set(seq, new Map(entriesIn(auditRow(chainRow(row))).map((entry) => [entry.charger, entry])));
    return read.get(seq)?.get(charger);
  };
}

/**
 * Times at which the broker acknowledged a new level for this charger, oldest first, counted as the control
 * flow counts them. A re-send against foreign control counts too. A decision that only extends a level
 * (`held`) does not. A level without its decision is counted. Throws SQLite errors.
 */
export function queryWrites(database: DatabaseSync, charger: string, since: Instant): readonly Instant[] {
  const rows = database.prepare(
    `SELECT at, kind, command, CASE WHEN json_valid(facts) THEN facts ->> 'progress' END AS progress,
       CASE WHEN json_valid(facts) THEN facts ->> 'resent' END AS resent,
       CASE WHEN json_valid(facts) THEN facts ->> 'cause' END AS cause
     FROM audit WHERE charger = ? ORDER BY seq DESC`,
  );
  const writes = new Map<string, Instant>();
  for (const { at, command } of sharedAcknowledgements(database, charger)) {
    if (at < since) break;
    writes.set(String(command), at);
  }
  for (const { at, kind, command, progress, resent, cause } of rows.iterate(charger)) {
    if (Number(at) < since) break;
    if (kind === "outcome" && progress === "acknowledged") writes.set(String(command), instant(Number(at)));
    if (kind === "outcome" && resent === 1)
      writes.set(`${String(command)} at ${Number(at)}`, instant(Number(at)));
    if (kind === "decision" && cause === "held") writes.delete(String(command));
  }
  return [...writes.values()].toSorted((a, b) => a - b);
}

/** A row of the quarantine. */
export const quarantinedIn = (row: Readonly<Record<string, SQLOutputValue>>): Quarantined => ({
  at: instant(Number(row["at"])),
  source: String(row["source"]),
  event: row["event"] === null ? null : String(row["event"]),
  path: String(row["path"]),
  reason: String(row["reason"]),
  raw: String(row["raw"]),
});

/** Newest first. */
export function queryQuarantine(database: DatabaseSync, limit: number): readonly Quarantined[] {
  return database.prepare("SELECT * FROM quarantine ORDER BY seq DESC LIMIT ?").all(limit).map(quarantinedIn);
}

/** Bodies without an HMAC, by id. One that was changed on disk is left out. */
const unchangedBodies = (
  database: DatabaseSync,
  table: "alarm" | "departure" | "plug_in" | "prices",
): readonly { readonly id: string; readonly body: string }[] =>
  database
    .prepare(`SELECT * FROM ${table} ORDER BY id`)
    .all()
    .map(({ id, body, sum }) => ({ id: String(id), body: String(body), sum }))
    .filter(({ id, body, sum }) => sumOf(table, id, body) === sum);

/** The last series of each kind and region. One that is left out can be requested again. */
export const queryPrices = (database: DatabaseSync): readonly PriceSeries[] =>
  unchangedBodies(database, "prices").map(({ body }): PriceSeries => JSON.parse(body));

/** Departures that were set, and plug-ins. */
export const queryDepartures = (database: DatabaseSync): StoredDepartures => ({
  departures: unchangedBodies(database, "departure").map(({ body }): SetDeparture => JSON.parse(body)),
  plugIns: new Map(
    unchangedBodies(database, "plug_in").map(({ id, body }) => [chargerId(id), JSON.parse(body) as PlugIn]),
  ),
});

/** Alarms of the last run. The fact of one that is left out opens it again. */
export const queryAlarms = (database: DatabaseSync): readonly Alarm[] =>
  unchangedBodies(database, "alarm").map(({ body }): Alarm => ({ notified: {}, ...JSON.parse(body) }));

/** Only the oldest rows may be pruned: the first row that must stay keeps all later ones. Null: nothing to prune. */
export function queryOldRows(
  database: DatabaseSync,
  { before, maxRows, most }: OldRowsQuery,
): OldRows | null {
  const ends = database.prepare("SELECT min(seq) AS first, max(seq) AS last FROM audit").get();
  const [first, last] = [Number(ends?.["first"] ?? 1), Number(ends?.["last"] ?? 0)];
  const step = first + most - 1;
  const stays = database
    .prepare("SELECT seq FROM audit WHERE seq BETWEEN ? AND ? AND at >= ? ORDER BY seq LIMIT 1")
    .get(first, step, before ?? -Number.MAX_SAFE_INTEGER);
  // Above `maxRows` a whole step is pruned, because each pruning adds a checkpoint row.
  const mayGo = stays === undefined || last - first >= maxRows ? step : Number(stays["seq"]) - 1;
  const through = Math.min(mayGo, last);
  const row = database.prepare(`SELECT ${hashIn("audit")} AS hash, at FROM audit WHERE seq = ?`).get(through);
  if (through < first || row === undefined) return null;
  return { rows: through - first + 1, through, hash: String(row["hash"]), at: instant(Number(row["at"])) };
}

/**
 * Names of those of the oldest `most` closed reports that were composed before `before`. Bodies of all reports would be
 * read for each step of retention.
 */
export function queryOldReports(database: DatabaseSync, before: Instant, most: number): readonly string[] {
  return database
    .prepare(
      `SELECT id FROM (SELECT seq, id, body FROM report WHERE open = 0 ORDER BY seq LIMIT ?)
       WHERE json_valid(body) AND json_extract(body, '$.composedAt') < ? ORDER BY seq`,
    )
    .all(most, before)
    .map(({ id }) => String(id));
}
