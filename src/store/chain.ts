import { createHmac } from "node:crypto";

import { chainHash, headSeal } from "../domain/audit.ts";

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
