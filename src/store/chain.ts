import { createHmac, hash } from "node:crypto";

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

/** A row as it is stored. `facts` stays JSON text: what is hashed is what is stored, byte for byte. */
export interface ChainRow {
  readonly cells: Cells;
  readonly facts: string;
  readonly hash: string;
}

/** How far a chain goes: the last row's number and hash. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
}

/** Before the first row. */
export const GENESIS: Head = { seq: 0, hash: "0".repeat(64) };

/** SHA-256, hex, of the previous hash, a newline, and the JSON array of the cells and the facts. */
export function rowHash(previous: string, cells: Cells, facts: string): string {
  return hash("sha256", `${previous}\n${JSON.stringify(cells).slice(0, -1)},${facts}]`);
}

/** Shows that a head was written by the holder of the site key: without it, cutting rows off would not show. */
export function seal(siteKey: Buffer, head: Head): string {
  return createHmac("sha256", siteKey).update(`audit head\n${head.seq}\n${head.hash}`).digest("hex");
}

export type Checked =
  | { readonly ok: true; readonly rows: number; readonly head: Head }
  /** `seq`: the first row that is not what it should be. */
  | { readonly ok: false; readonly seq: number; readonly reason: string };

/** Follows the rows from `start`: each must carry the next number, and the hash that the ones before it lead to. */
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
