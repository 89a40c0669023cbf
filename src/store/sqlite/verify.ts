import type { Verified, Broken } from "../../domain/store.ts";
import { instant, iso } from "../../domain/units.ts";
import { runToEnd, type ResumableTask } from "../../platform/cooperative.ts";
import { followChain, GENESIS, type Head, RARE, readAfter, unsealed } from "../chain.ts";
import { damaged, type Fault } from "../fault.ts";
import { chainPage, chainRows, hashIn, unindexed } from "./auditRows.ts";
import { verifyingBodies } from "./bodies.ts";
import { metaValue, type Connection } from "./connection.ts";
import { epochFault, type StoredEpoch } from "./lock.ts";
import { isOurReading, unsignedThrough } from "./readings.ts";

/** Rows verified at a start. All of them would delay control of the chargers. */
const TAIL = 1000;

/** Rows followed in one step: some milliseconds on a small gateway. */
const ROWS_PER_STEP = 100;

/**
 * Verifies the whole record, from its first row or from the checkpoint of a pruning, to the sealed head. It
 * yields after each step: rows added meanwhile are verified too, and rows pruned meanwhile are skipped.
 * `open` is called in each step, because a fault may reopen the database.
 */
function* verifying(
  open: () => Connection,
  siteKey: Buffer,
  stored: () => StoredEpoch | null = () => null,
): ResumableTask<Verified> {
  let start = firstStart(open());
  let head = start;
  for (;;) {
    const connection = open();
    const page = chainPage(connection.database, readAfter(head), ROWS_PER_STEP);
    const checked = followChain(head, page);
    if (checked.ok) {
      const hidden = unindexed(connection.database, head.seq + 1, checked.head.seq);
      if (hidden !== null) return hidden;
      head = checked.head;
      if (page.length === 0)
        return (
          otherHead(connection, siteKey, head) ??
          otherEpoch(connection, siteKey, stored()) ?? {
            ok: true,
            rows: head.seq - start.seq,
            head: head.hash,
          }
        );
    } else {
      const now = firstStart(connection);
      if (now.seq <= head.seq) return checked;
      // Pruned past our position: the checkpoint is the new start, as for a verification that begins now.
      start = now;
      head = now;
    }
    yield;
  }
}

/** `verifying` without yielding. */
export const verifyAll = (connection: Connection, siteKey: Buffer): Verified =>
  runToEnd(verifying(() => connection, siteKey));

/** Verifies the newest rows and the sealed head. `witness`: the head in the witness file. */
export function verifyTail(
  connection: Connection,
  siteKey: Buffer,
  witness: Head | null,
  rows = TAIL,
): Head | Fault {
  const start = tailStart(connection, rows);
  const checked = followChain(start, chainRows(connection.database, start.seq));
  if (!checked.ok) return notWhole(checked);
  const { head } = checked;
  const other = otherHead(connection, siteKey, head);
  if (other !== null) return notWhole(other);
  if (witness === null || witness.seq <= head.seq) return head;
  const reason = `it ends at row ${head.seq}, but row ${witness.seq} was committed`;
  return notWhole({ ok: false, seq: head.seq + 1, reason });
}

const notWhole = (broken: Broken): Fault => ({ ...damaged(`audit record: ${broken.reason}`), broken });

/** Null: the rows end at the sealed head. */
function otherHead(connection: Connection, siteKey: Buffer, { seq, hash }: Head): Broken | null {
  const text = metaValue(connection, "head");
  const head = text === null ? GENESIS : unsealed(siteKey, text);
  if (head === null) return { ok: false, seq, reason: "its head was not written with this site key" };
  if (head.seq === seq && head.hash === hash) return null;
  return { ok: false, seq: seq + 1, reason: `it ends at row ${seq}, but its head says ${head.seq}` };
}

/** Null: the head was written by the run of the epoch file, or a later one. */
function otherEpoch(connection: Connection, siteKey: Buffer, stored: StoredEpoch | null): Broken | null {
  const text = metaValue(connection, "head");
  const head = text === null ? null : unsealed(siteKey, text);
  const fault = epochFault(stored, head);
  return fault === null ? null : { ok: false, seq: (head?.seq ?? 0) + 1, reason: fault.reason };
}

/**
 * The head before the oldest row. Pruning up to row n first appends a `checkpoint` row with the facts `{
 * through: n, hash: <that of row n> }`. The chain and the sealed head protect that row like any other.
 */
function firstStart(connection: Connection): Head {
  const { database } = connection;
  const first = database.prepare("SELECT min(seq) AS seq FROM audit").get()?.["seq"] ?? 1;
  if (first === 1) return GENESIS;
  const row = database
    .prepare(`SELECT facts FROM audit WHERE kind = 'checkpoint' AND ${RARE} ORDER BY seq DESC LIMIT 1`)
    .get();
  const { through, hash } = checkpoint(String(row?.["facts"]));
  return through === Number(first) - 1 ? { seq: through, hash } : GENESIS;
}

function checkpoint(facts: string): { through: number; hash: string } {
  try {
    const { through, hash } = JSON.parse(facts);
    return { through: Number(through), hash: String(hash) };
  } catch {
    // No readable checkpoint: the rows before count as missing.
    return { through: 0, hash: "" };
  }
}

function tailStart(connection: Connection, rows: number): Head {
  const anchor = connection.database
    .prepare(`SELECT seq, ${hashIn("audit")} AS hash FROM audit ORDER BY seq DESC LIMIT 1 OFFSET ?`)
    .get(rows);
  if (anchor === undefined) return firstStart(connection);
  return { seq: Number(anchor["seq"]), hash: String(anchor["hash"]) };
}

/** Readings checked in one step: some milliseconds on a small gateway. */
const READINGS_PER_STEP = 500;

/** Number of messages with a valid HMAC, and of those written before there was one. */
interface VerifiedReadings {
  readonly ok: true;
  readonly readings: number;
  readonly unsigned: number;
}

/** Verifies the whole record, then the tables beside it. */
export function* verifyingState(
  open: () => Connection,
  siteKey: Buffer,
  epoch: () => StoredEpoch | null,
): ResumableTask<Verified> {
  const record = yield* verifying(open, siteKey, epoch);
  if (!record.ok) return record;
  const stored = yield* verifyingStored(open, siteKey);
  return stored.ok ? { ...record, ...stored } : stored;
}

/**
 * Verifies events, holds, obligations, reports and readings. It yields after each step. `open` is called in
 * each step, because a fault may reopen the database.
 */
function* verifyingStored(open: () => Connection, siteKey: Buffer): ResumableTask<VerifiedReadings | Broken> {
  const body = yield* verifyingBodies(open, siteKey);
  if (body !== null) return { ok: false, seq: null, reason: body };
  let [readings, unsigned] = [0, 0];
  let after: readonly [number, string, number, number] = [Number.MIN_SAFE_INTEGER, "", 0, 0];
  for (;;) {
    const connection = open();
    const trust = { siteKey, unsignedThrough: unsignedThrough(connection, siteKey) };
    const page = connection.database
      .prepare(
        `SELECT * FROM reading WHERE (minute, charger, at, delay) > (?, ?, ?, ?)
         ORDER BY minute, charger, at, delay LIMIT ${READINGS_PER_STEP}`,
      )
      .all(...after);
    for (const row of page) {
      const [minute, charger, at, delay] = [row["minute"], row["charger"], row["at"], row["delay"]];
      if (!isOurReading(trust, row))
        return {
          ok: false,
          seq: null,
          reason: `the stored reading of ${String(charger)} at ${iso(instant(Number(at)))} was changed`,
        };
      if (row["mac"] === null) unsigned += 1;
      else readings += 1;
      after = [Number(minute), String(charger), Number(at), Number(delay)];
    }
    if (page.length < READINGS_PER_STEP) return { ok: true, readings, unsigned };
    yield;
  }
}
