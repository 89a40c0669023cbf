import {
  type AuditEntry,
  type AuditRow,
  entriesIn,
  factOf,
  type RecordRow,
  REMEMBERED_REJECTIONS,
  textOf,
} from "../../domain/audit.ts";
import type { AuditQuery, OldRows, OldRowsQuery } from "../../domain/store.ts";
import { type ChargerId, instant, type Instant } from "../../domain/units.ts";
import { entriesOfPage, GENESIS, isRare, RARE } from "../chain.ts";
import { shownFacts, shownWords } from "../decisionFacts.ts";
import { column, type Row, type SiteDatabase } from "./database.ts";

/** An entry in its stored form: decisions and outcomes leave out what is usual. `body` is the hashed text, the cells as JSON. */
function storedEntry(row: Row): AuditEntry & { readonly seq: number } {
  const [seq, at, kind, charger, vehicle, event, command, words, facts] = JSON.parse(String(row["body"]));
  return { seq, at: instant(at), kind, charger, vehicle, event, command, words, facts };
}

/** A row as the rest of the program reads it. */
export function entryOf(row: Row): AuditRow {
  const entry = storedEntry(row);
  return { ...entry, words: shownWords(entry), facts: shownFacts(entry), hash: String(row["hash"]) };
}

/** A row with all that its hash needs. `start`: hash before the oldest stored row. */
export const recordRow = (row: Row, start: string): RecordRow => ({
  ...entryOf(row),
  previous: row["previous"] === null ? start : String(row["previous"]),
  text: String(row["body"]),
});

/** Rows that name several commands, by charger. */
const SHARED_ROWS = `acknowledged JOIN audit ON audit.site = acknowledged.site AND audit.seq = acknowledged.seq
  WHERE acknowledged.site = $1 AND acknowledged.charger = $8 AND acknowledged.seq > $2 AND`;

/** Rows of the record. See `AuditQuery`. */
export async function queryAudit(
  { database, site }: SiteDatabase,
  query: AuditQuery,
): Promise<readonly AuditRow[]> {
  const { charger, event, kind, notAfter, after = 0, before, newest = false, limit = 1000 } = query;
  const from = query.part === undefined ? after : after - 1;
  const end = before !== undefined && query.beforePart !== undefined ? before + 1 : before;
  const ordered = `ORDER BY seq ${newest ? "DESC" : "ASC"} LIMIT $7`;
  const matching = (rows: string): string =>
    `SELECT audit.seq, body, hash FROM ${rows} audit.site = $1 AND audit.seq > $2
     AND ($3::bigint IS NULL OR audit.seq < $3) AND ($4::text IS NULL OR event = $4)
     AND ($5::text IS NULL OR kind = $5) AND ($6::bigint IS NULL OR at <= $6)
     ${kind !== undefined && isRare(kind) ? `AND ${RARE}` : ""} ${ordered}`;
  // Each half has an index. A condition with OR has none: all rows behind `after` would be read.
  const ofCharger = `(${matching("audit WHERE charger = $8 AND")}) UNION ALL (${matching(SHARED_ROWS)}) ${ordered}`;
  const values = [site, from, end ?? null, column(event ?? null), kind ?? null, notAfter ?? null, limit];
  const rows =
    charger === undefined
      ? await database.query(matching("audit WHERE"), values)
      : await database.query(ofCharger, [...values, column(charger)]);
  return entriesOfPage(rows.map(entryOf), query);
}

/** Hashes of those of these rows that are still stored. */
export async function queryHashes(
  { database, site }: SiteDatabase,
  seqs: readonly number[],
): Promise<ReadonlyMap<number, string>> {
  const rows = await database.query(
    "SELECT seq, hash FROM audit WHERE site = $1 AND seq = ANY ($2::bigint[])",
    [site, seqs],
  );
  return new Map(rows.map((row) => [Number(row["seq"]), String(row["hash"])]));
}

/** First and last row. An empty record has first 1, last 0. */
export async function endsOf({ database, site }: SiteDatabase): Promise<{ first: number; last: number }> {
  const [row] = await database.query(
    "SELECT min(seq) AS first, max(seq) AS last FROM audit WHERE site = $1",
    [site],
  );
  return { first: Number(row?.["first"] ?? 1), last: Number(row?.["last"] ?? 0) };
}

/** Only the oldest rows may be pruned: the first row that must stay keeps all later ones. Null: nothing to prune. */
export async function queryOldRows(from: SiteDatabase, query: OldRowsQuery): Promise<OldRows | null> {
  const { database, site } = from;
  const { first, last } = await endsOf(from);
  const step = first + query.most - 1;
  const [stays] = await database.query(
    "SELECT seq FROM audit WHERE site = $1 AND seq BETWEEN $2 AND $3 AND at >= $4 ORDER BY seq LIMIT 1",
    [site, first, step, query.before ?? -Number.MAX_SAFE_INTEGER],
  );
  // Above `maxRows` a whole step is pruned, because each pruning adds a checkpoint row.
  const mayGo = stays === undefined || last - first >= query.maxRows ? step : Number(stays["seq"]) - 1;
  const through = Math.min(mayGo, last);
  const [row] = await database.query("SELECT hash, at FROM audit WHERE site = $1 AND seq = $2", [
    site,
    through,
  ]);
  if (through < first || row === undefined) return null;
  return {
    rows: through - first + 1,
    through,
    hash: String(row["hash"]),
    at: instant(Number(row["at"])),
  };
}

/** Last row that was written by `until`. Rows are in order of time, except after a step of the clock. */
export async function lastBy(from: SiteDatabase, until: Instant): Promise<number> {
  const { database, site } = from;
  const { first, last } = await endsOf(from);
  let [low, high] = [first, last + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [row] = await database.query("SELECT at FROM audit WHERE site = $1 AND seq = $2", [site, middle]);
    if (Number(row?.["at"]) > until) high = middle;
    else low = middle + 1;
  }
  return low - 1;
}

/** Outages that began before this row and were still open then. */
export async function outagesBefore(
  { database, site }: SiteDatabase,
  seq: number,
  start: string,
): Promise<readonly RecordRow[]> {
  const rows = await database.query(
    `${ROWS} WHERE audit.site = $1 AND audit.kind = 'silence' AND audit.${RARE} AND audit.seq < $2 ORDER BY audit.seq DESC LIMIT ${MOST_OUTAGES}`,
    [site, seq],
  );
  return openOutagesIn(rows, start);
}

/** `rows`: silences, the newest first. */
function openOutagesIn(rows: readonly Row[], start: string): readonly RecordRow[] {
  const newest = new Map<string, RecordRow>();
  for (const stored of rows) {
    const row = recordRow(stored, start);
    const outage = `${row.charger} ${textOf(row.facts, "outage")}`;
    if (!newest.has(outage)) newest.set(outage, row);
  }
  return [...newest.values()].filter(
    ({ facts }) => textOf(facts, "outage") !== null && factOf(facts, "over") !== true,
  );
}

/** Outages of many sites that are open now, by one statement. */
export async function readOpenOutages(
  database: SiteDatabase["database"],
  sites: readonly string[],
): Promise<ReadonlyMap<string, readonly RecordRow[]>> {
  const rows = await database.query(
    `SELECT s.id AS site, a.* FROM unnest($1::text[]) AS s (id) CROSS JOIN LATERAL (
       ${ROWS} WHERE audit.site = s.id AND audit.kind = 'silence' AND audit.${RARE} ORDER BY audit.seq DESC LIMIT ${MOST_OUTAGES}) AS a`,
    [sites],
  );
  const ofSite = Map.groupBy(rows, (row) => String(row["site"]));
  return new Map([...ofSite].map(([site, own]) => [site, openOutagesIn(own, GENESIS.hash)]));
}

/** The newest rows about rejected input of many sites, newest first, by one statement. */
export async function readRejected(
  database: SiteDatabase["database"],
  sites: readonly string[],
): Promise<ReadonlyMap<string, readonly AuditRow[]>> {
  const rows = await database.query(
    `SELECT s.id AS site, a.* FROM unnest($1::text[]) AS s (id) CROSS JOIN LATERAL (
       SELECT seq, body, hash FROM audit WHERE site = s.id AND kind = 'rejected' AND ${RARE}
       ORDER BY seq DESC LIMIT ${REMEMBERED_REJECTIONS}) AS a ORDER BY s.id, a.seq DESC`,
    [sites],
  );
  const ofSite = Map.groupBy(rows, (row) => String(row["site"]));
  return new Map([...ofSite].map(([site, own]) => [site, own.map(entryOf)]));
}

/** Most silence rows that are read backwards. */
const MOST_OUTAGES = 10_000;

/** Each row with the hash of the row before it. */
export const ROWS = `SELECT audit.body, audit.hash, before.hash AS previous
  FROM audit LEFT JOIN audit AS before ON before.site = audit.site AND before.seq = audit.seq - 1`;

/**
 * Times at which the broker acknowledged a new level, as `queryWrites` finds them, in the newest rows of the record.
 * Null: the rows do not reach back to `since`. `isWhole`: there are no others.
 */
export function writesIn(tail: readonly Row[], since: Instant, isWhole: boolean): Writes | null {
  const [oldest] = tail;
  if (!isWhole && Number(oldest?.["at"]) >= since) return null;
  const from = tail.findIndex(({ at }) => Number(at) >= since);
  const later = from < 0 ? [] : tail.slice(from).toReversed();
  return writesOf(later.filter(({ kind }) => kind === "outcome" || kind === "decision"));
}

/** Times by charger, oldest first. */
type Writes = ReadonlyMap<ChargerId, readonly Instant[]>;

/**
 * Times since `since` at which the broker acknowledged a new level, by charger, oldest first. They are counted as
 * SQLite counts them: a re-send counts, a decision that only extends a level does not.
 */
export async function queryWrites(from: SiteDatabase, since: Instant): Promise<Writes> {
  const { database, site } = from;
  const rows = await database.query(
    "SELECT body, hash FROM audit WHERE site = $1 AND seq > $2 AND kind IN ('outcome', 'decision') ORDER BY seq DESC",
    [site, await lastBy(from, instant(since - 1))],
  );
  return writesOf(rows);
}

/** `rows`: the newest first. */
function writesOf(rows: readonly Row[]): Writes {
  const writes = new Map<ChargerId, Map<string, Instant>>();
  // The members that are read here are stored as they are.
  for (const { kind, charger, command, at, facts } of rows.flatMap((row) => entriesIn(storedEntry(row)))) {
    if (charger === null) continue;
    const found = writes.get(charger) ?? new Map<string, Instant>();
    writes.set(charger, found);
    if (kind === "outcome" && factOf(facts, "progress") === "acknowledged") found.set(String(command), at);
    if (kind === "outcome" && factOf(facts, "resent") === true) found.set(`${command} at ${at}`, at);
    if (kind === "decision" && factOf(facts, "cause") === "held") found.delete(String(command));
  }
  return new Map(
    [...writes].map(([charger, found]) => [charger, [...found.values()].toSorted((a, b) => a - b)]),
  );
}
