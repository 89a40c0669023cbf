import { chainHash, headSeal } from "../core/chain.ts";

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

/** What of a row is hashed: the JSON array of its cells and its facts. */
export const rowText = (cells: Cells, facts: string): string =>
  `${JSON.stringify(cells).slice(0, -1)},${facts}]`;

/** Of the previous hash and the row's text. */
export const rowHash = (previous: string, cells: Cells, facts: string): string =>
  chainHash(previous, rowText(cells, facts));

/** Only the holder of the site key can make it. */
export const seal = (siteKey: Buffer, head: Head): string => headSeal(siteKey, head.seq, head.hash);

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
