import { chainHash, type Json, numberOf, textOf } from "../../domain/audit.ts";
import type { Broken, Verified } from "../../domain/store.ts";
import { instant, iso } from "../../domain/units.ts";
import type { BodyTable } from "../bodies.ts";
import { GENESIS, type Head, readAfter, unsealed } from "../chain.ts";
import { endsOf, entryOf } from "./auditRows.ts";
import { foundBody } from "./bodies.ts";
import { column, type Row, type SiteDatabase } from "./database.ts";
import { newestCheckpoint } from "./eventRows.ts";
import { isOurReading } from "./readings.ts";

/** Rows in one statement. */
const PAGE = 1_000;
/** Rows verified at a start. All of them would delay control of the chargers. */
const TAIL = 1_000;

const changed = (seq: number): Broken => ({
  ok: false,
  seq,
  reason: `row ${seq}, or the hash of the row before it, was changed`,
});

/** Verifies the whole record, from its first row or from the checkpoint of a pruning, then the tables beside it. */
export async function verify(from: SiteDatabase): Promise<Verified> {
  const start = await firstStart(from);
  const record = await follow(from, start);
  if (!record.ok) return record;
  const stored = (await verifyBodies(from)) ?? (await verifyReadings(from));
  if (typeof stored !== "number") return stored;
  const { head } = record;
  return { ok: true, rows: head.seq - start.seq, head: head.hash, readings: stored, unsigned: 0 };
}

/** The newest rows of many sites, oldest first, by one statement. One more than are verified has the hash before them. */
export async function readTails(
  database: SiteDatabase["database"],
  sites: readonly string[],
): Promise<ReadonlyMap<string, readonly Row[]>> {
  const rows = await database.query(TAILS, [sites, TAIL + 1]);
  return Map.groupBy(rows, (row) => String(row["site"]));
}

const TAILS = `SELECT a.* FROM unnest($1::text[]) AS s (id)
  CROSS JOIN LATERAL (SELECT * FROM audit WHERE site = s.id ORDER BY seq DESC LIMIT $2) AS a ORDER BY a.site, a.seq`;

/** True: the rows are all that the record has. */
export const isWholeRecord = (tail: readonly Row[]): boolean => tail.length <= TAIL;

/** Verifies the newest rows, as `readTails` read them, and the sealed head. */
export function verifyTail(siteKey: Buffer, tail: readonly Row[], sealed: string): Head | Broken {
  const [oldest] = tail;
  // The whole record has its checkpoint among its rows.
  const isWhole = isWholeRecord(tail);
  let head = isWhole
    ? startBefore(
        oldest,
        tail.findLast(({ kind }) => kind === "checkpoint"),
      )
    : { seq: Number(oldest?.["seq"]), hash: String(oldest?.["hash"]) };
  for (const row of isWhole ? tail : tail.slice(1)) {
    const next = nextHead(head, row);
    if ("ok" in next) return next;
    head = next;
  }
  const known = unsealed(siteKey, sealed);
  if (known === null) return foreignHead(head);
  return known.seq === head.seq && known.hash === head.hash ? head : cutShort(head, known);
}

/** The head before the oldest row. A `checkpoint` row continues the chain after pruned rows. */
async function firstStart(from: SiteDatabase): Promise<Head> {
  const { first } = await endsOf(from);
  return startAt(first, (await newestCheckpoint(from))?.facts ?? null);
}

const startBefore = (oldest: Row | undefined, checkpoint: Row | undefined): Head =>
  startAt(Number(oldest?.["seq"] ?? 1), checkpoint === undefined ? null : entryOf(checkpoint).facts);

function startAt(first: number, facts: Json): Head {
  const through = numberOf(facts, "through");
  return through !== null && through === first - 1
    ? { seq: through, hash: textOf(facts, "hash") ?? "" }
    : GENESIS;
}

/** Follows the chain to its end, which must be the sealed head. Rows that are added meanwhile are followed too. */
async function follow(
  { database, site, siteKey }: SiteDatabase,
  start: Head,
): Promise<{ readonly ok: true; readonly head: Head } | Broken> {
  let head = start;
  for (;;) {
    const page = await database.query(
      "SELECT * FROM audit WHERE site = $1 AND seq > $2 ORDER BY seq LIMIT $3",
      [site, readAfter(head), PAGE],
    );
    for (const row of page) {
      const next = nextHead(head, row);
      if ("ok" in next) return next;
      head = next;
    }
    if (page.length > 0) continue;
    const [state] = await database.query("SELECT sealed, head_seq FROM site WHERE id = $1", [site]);
    const sealed = unsealed(siteKey, String(state?.["sealed"]));
    if (sealed === null) return foreignHead(head);
    if (sealed.seq === head.seq && sealed.hash === head.hash) return { ok: true, head };
    // Rows may have been added between the two statements.
    const [more] = await database.query("SELECT 1 FROM audit WHERE site = $1 AND seq = $2", [
      site,
      head.seq + 1,
    ]);
    if (more === undefined) return cutShort(head, sealed);
  }
}

/** The head after this row. */
function nextHead(head: Head, row: Row): Head | Broken {
  const seq = head.seq + 1;
  const found = Number(row["seq"]);
  if (found !== seq) return { ok: false, seq, reason: `row ${seq} is missing: the next one is ${found}` };
  const hash = chainHash(head.hash, String(row["body"]));
  return hash === row["hash"] && isIndexedAsWritten(row) ? { seq, hash } : changed(seq);
}

const foreignHead = ({ seq }: Head): Broken => ({
  ok: false,
  seq,
  reason: "its head was not written with this site key",
});

const cutShort = (head: Head, sealed: Head): Broken => ({
  ok: false,
  seq: head.seq + 1,
  reason: `it ends at row ${head.seq}, but its head says ${sealed.seq}`,
});

/** The columns that are searched must have what the hashed text has. */
function isIndexedAsWritten(row: Row): boolean {
  const [seq, at, kind, charger, , event, command] = JSON.parse(String(row["body"]));
  return (
    [row["seq"], row["at"], row["kind"]].join("\n") === [seq, at, kind].join("\n") &&
    row["charger"] === column(charger) &&
    row["event"] === column(event) &&
    row["command"] === column(command)
  );
}

/** The first value that we did not write. Null: all are ours. */
async function verifyBodies({ database, site, siteKey }: SiteDatabase): Promise<Broken | null> {
  for (let after = ["", ""]; ;) {
    const page = await database.query(
      "SELECT kind, id, body, mac FROM body WHERE site = $1 AND (kind, id) > ($2, $3) ORDER BY kind, id LIMIT $4",
      [site, ...after, PAGE],
    );
    for (const row of page) {
      const kind = String(row["kind"]);
      const { id, isOurs } = foundBody(siteKey, kind as BodyTable, row);
      if (!isOurs) return { ok: false, seq: null, reason: `the stored ${kind} ${id} was changed` };
      after = [kind, id];
    }
    if (page.length < PAGE) return null;
  }
}

/** The number of stored messages of chargers, all of them ours. */
async function verifyReadings({ database, site, siteKey }: SiteDatabase): Promise<number | Broken> {
  let count = 0;
  let after: readonly unknown[] = [Number.MIN_SAFE_INTEGER, "", 0, 0];
  for (;;) {
    const page = await database.query(
      `SELECT * FROM reading WHERE site = $1 AND (minute, charger, at, delay) > ($2, $3, $4, $5)
       ORDER BY minute, charger, at, delay LIMIT $6`,
      [site, ...after, PAGE],
    );
    for (const row of page) {
      if (!isOurReading(siteKey, row)) {
        const at = iso(instant(Number(row["at"])));
        return {
          ok: false,
          seq: null,
          reason: `the stored reading of ${String(row["charger"])} at ${at} was changed`,
        };
      }
      after = [row["minute"], row["charger"], row["at"], row["delay"]];
    }
    count += page.length;
    if (page.length < PAGE) return count;
  }
}
