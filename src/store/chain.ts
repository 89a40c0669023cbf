import { createHmac } from "node:crypto";

import {
  type AuditEntry,
  type AuditRow,
  type AuditKind,
  chargersOfSharedRow,
  entriesIn,
  factOf,
  textOf,
  type RecordRow,
  chainHash,
  headSeal,
  SharedRow,
} from "../domain/audit.ts";
import { isOverruled } from "../domain/reason.ts";
import type { AuditQuery, EventRows } from "../domain/store.ts";
import { instant, chargerId, vehicleId, eventId, type EventId, type Windows } from "../domain/units.ts";
import { storedFacts, storedWords, shownWords, shownFacts } from "./decisionFacts.ts";

/** A row without its facts and its hash, in the order in which it is hashed and stored. */
export type Cells = readonly [
  seq: number,
  at: number,
  kind: string,
  charger: string | null,
  vehicle: string | null,
  event: string | null,
  command: string | null,
  words: string,
];

/** A row as stored. `facts` stays JSON text, so that the hashed bytes are the stored bytes. */
export interface ChainRow {
  readonly cells: Cells;
  readonly facts: string;
  readonly hash: string;
}

/** Number and hash of the last row of a chain. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** The head of an empty chain. */
export const GENESIS: Head = { seq: 0, hash: "0".repeat(64) };

/**
 * The rows that follow a head have greater numbers than this. After GENESIS it is below every number: a row below 1 is
 * not ours, and would never be read.
 */
export const readAfter = (head: Head): number => (head === GENESIS ? Number.MIN_SAFE_INTEGER : head.seq);

/** The text of a row that is hashed: the JSON array of its cells and its facts. */
export const rowText = (cells: Cells, facts: string): string =>
  `${JSON.stringify(cells).slice(0, -1)},${facts}]`;

/** Hash over the previous hash and the row's text. */
export const rowHash = (previous: string, cells: Cells, facts: string): string =>
  chainHash(previous, rowText(cells, facts));

/** Only the holder of the site key can compute it. */
export const seal = (siteKey: Buffer, head: Head): string => headSeal(siteKey, head.seq, head.hash);

export type Checked =
  | { readonly ok: true; readonly rows: number; readonly head: Head }
  /** `seq`: the first row with a wrong number or hash. */
  | { readonly ok: false; readonly seq: number; readonly reason: string };

/** Verifies the rows after `start`: each must carry the next number and the right hash. */
export function followChain(start: Head, rows: Iterable<ChainRow>): Checked {
  let seq = start.seq;
  let previous = start.hash;
  for (const row of rows) {
    seq += 1;
    const found = row.cells[0];
    if (found !== seq) return { ok: false, seq, reason: `row ${seq} is missing: the next one is ${found}` };
    if (rowHash(previous, row.cells, row.facts) !== row.hash) {
      return { ok: false, seq, reason: `row ${seq}, or the hash of the row before it, was changed` };
    }
    previous = row.hash;
  }
  return { ok: true, rows: seq - start.seq, head: { seq, hash: previous } };
}

/** `epoch`: epoch of the run that wrote it. Null: written by a version that did not store it here. */
export interface SealedHead extends Head {
  readonly epoch: number | null;
}

/** A head as text of fixed length: row number, hash, epoch of the run, HMAC-SHA256. */
export function sealed(siteKey: Buffer, { seq, hash }: Head, epoch: number): string {
  const [row, run] = [seq, epoch].map((number) => String(number).padStart(16, "0"));
  return `${row} ${hash} ${run} ${authenticate(siteKey, "audit head and epoch", String(seq), hash, String(epoch))}`;
}

/** The format of earlier versions: row number, hash, HMAC-SHA256. */
const sealedBefore = (siteKey: Buffer, head: Head): string =>
  `${String(head.seq).padStart(16, "0")} ${head.hash} ${seal(siteKey, head)}`;

/** Null: not a head, or not sealed with this key. */
export function unsealed(siteKey: Buffer, text: string): SealedHead | null {
  const [seq = "", hash = "", run = ""] = text.split(" ");
  const head = { seq: Number(seq), hash };
  if (text === sealedBefore(siteKey, head)) return { ...head, epoch: null };
  const epoch = Number(run);
  return text === sealed(siteKey, head, epoch) ? { ...head, epoch } : null;
}

/**
 * HMAC-SHA256 with the site key, hex. The label names the purpose, so that a code for one purpose is invalid
 * for another. A label holds no newline, and is used in one place only.
 */
export const authenticate = (siteKey: Uint8Array, label: string, ...parts: readonly string[]): string =>
  createHmac("sha256", siteKey)
    .update([label, ...parts].join("\n"))
    .digest("hex");

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

/** A row to be stored, and its entries. */
export interface NextRow extends ChainRow {
  readonly entries: readonly AuditEntry[];
  /** Chargers that a shared row names. */
  readonly chargers: readonly string[];
}

/** Entries in order as the next rows of the chain. Acknowledgements share a row where they may. */
export function* nextRows(start: Head, entries: Iterable<AuditEntry>): Generator<NextRow> {
  let { seq, hash } = start;
  for (const { row, entries: shared } of grouped(entries)) {
    if (row === null) continue;
    seq += 1;
    const cells = cellsOf(seq, row);
    const facts = JSON.stringify(storedFacts(row));
    hash = rowHash(hash, cells, facts);
    yield { cells, facts, hash, entries: shared, chargers: chargersOfSharedRow(row) };
  }
}

function* grouped(entries: Iterable<AuditEntry>): Generator<SharedRow> {
  let next = new SharedRow();
  for (const entry of entries) {
    if (next.add(entry)) continue;
    yield next;
    next = new SharedRow();
    next.add(entry);
  }
  yield next;
}

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
 * them. A row that is larger than the limit is cut: its last entry has `part` then, where the next page goes on.
 */
export function entriesOfPage(rows: readonly AuditRow[], query: AuditQuery): readonly AuditRow[] {
  const { charger, notAfter, newest = false, limit = 1000, part = 0, beforePart = Infinity } = query;
  const found: AuditRow[] = [];
  for (const row of rows) {
    const entries = entriesIn(row);
    const first = row.seq === query.after ? part : 0;
    const end = row.seq === query.before ? beforePart - 1 : Infinity;
    const matching = entries
      .map((entry, index) => ({ entry, part: index + 1 }))
      .slice(first, end)
      .filter(({ entry }) => charger === undefined || entry.charger === charger)
      .filter(({ entry }) => notAfter === undefined || entry.at <= notAfter);
    if (found.length > 0 && found.length + matching.length > limit) break;
    const inOrder = newest ? matching.toReversed() : matching;
    const isCut = matching.length > limit;
    for (const [index, { entry, part: upTo }] of inOrder.slice(0, limit).entries())
      found.push(isCut && index === limit - 1 ? { ...entry, part: upTo } : entry);
    if (found.length >= limit) break;
  }
  return found;
}

/** The last decision of a charger among the rows of an event. */
type LastDecision = Pick<RecordRow, "charger" | "vehicle" | "seq">;

/**
 * Search for the rows that concern an event, which are added in order. Their numbers are kept, and the rows are not:
 * there may be a hundred thousand.
 */
export class EventRowSearch {
  readonly #event: EventId;
  readonly #windows: Windows;
  readonly #seqs: number[] = [];
  /** Rows of the daemon, of operators and of outages. */
  readonly #others: { readonly charger: string | null; readonly seq: number; readonly isWhole: boolean }[] =
    [];
  readonly #chargers = new Set<string | null>();
  /** Last decision by charger. Null: a release. */
  readonly #last = new Map<string | null, LastDecision | null>();
  #broken: number | null = null;

  constructor(event: EventId, windows: Windows) {
    this.#event = event;
    this.#windows = windows;
  }

  add(row: RecordRow): void {
    const { charger, vehicle, seq, kind, facts } = row;
    const isOwn = row.event === this.#event;
    if (isOwn) this.#chargers.add(charger);
    if (isOwn || isOverruled(this.#event, row, this.#windows)) this.#keep(seq, isWhole(row));
    else if (kind !== "decision") this.#others.push({ charger, seq, isWhole: isWhole(row) });
    else return;
    const isReleased = textOf(factOf(facts, "told"), "kind") === "release";
    if (kind === "decision") this.#last.set(charger, isReleased ? null : { charger, vehicle, seq });
  }

  /** Last decisions that another decision must have ended. */
  unreleased(): readonly LastDecision[] {
    return [...this.#last.values()].filter((last) => last !== null);
  }

  /** `row`: the decision after the last one, which was for this vehicle. */
  addNext(row: RecordRow, vehicle: string | null): void {
    if (row.vehicle === vehicle && row.event !== this.#event) this.#keep(row.seq, isWhole(row));
  }

  /** A row of an operator, the daemon or an outage concerns the event if it names one of its chargers, or none. */
  result(checkpoint: RecordRow | null): EventRows {
    for (const { charger, seq, isWhole } of this.#others)
      if (charger === null || this.#chargers.has(charger)) this.#keep(seq, isWhole);
    if (this.#broken !== null) return { ok: false, seq: this.#broken };
    return { ok: true, checkpoint, seqs: this.#seqs.toSorted((a, b) => a - b) };
  }

  #keep(seq: number, isWhole: boolean): void {
    this.#seqs.push(seq);
    if (!isWhole) this.#broken = Math.min(seq, this.#broken ?? seq);
  }
}

const isWhole = ({ previous, text: hashed, hash }: RecordRow): boolean =>
  chainHash(previous, hashed) === hash;

/** The hash before the oldest stored row. `checkpoint`: null where that is row 1. */
export const startOf = (checkpoint: RecordRow | null): string =>
  textOf(checkpoint?.facts ?? null, "hash") ?? GENESIS.hash;

/** Kinds of nearly all rows of a record. */
const COMMON: ReadonlySet<AuditKind> = new Set(["decision", "outcome"]);

export const isRare = (kind: AuditKind): boolean => !COMMON.has(kind);

/** Condition of the index over rare kinds. A database uses the index only for a query with the same text. */
export const RARE = "kind NOT IN ('decision', 'outcome')";
