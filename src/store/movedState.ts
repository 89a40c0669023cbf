import type { Quarantined } from "../domain/store.ts";
import type { BodyTable } from "./bodies.ts";
import type { ChainRow, Head } from "./chain.ts";
import type { Keys } from "./keys.ts";
import type { ReadingRow } from "./readingRow.ts";

/** A value of a table that no chain protects. Its MAC is computed where it is stored. */
export interface MovedBody {
  readonly table: BodyTable;
  readonly id: string;
  readonly body: string;
}

/** Rows of one table, in their order. */
export type MovedRows =
  | { readonly table: "audit"; readonly rows: readonly ChainRow[] }
  | { readonly table: "acknowledged"; readonly rows: readonly (readonly [charger: string, seq: number])[] }
  | { readonly table: "body"; readonly rows: readonly MovedBody[] }
  | { readonly table: "quarantine"; readonly rows: readonly Quarantined[] }
  | { readonly table: "reading"; readonly rows: readonly ReadingRow[] }
  | {
      readonly table: "seat";
      readonly rows: readonly (readonly [day: number, vehicle: string, charger: string])[];
    };

/** The whole state of a stopped site, verified and held against every other process. */
export interface MovedState {
  readonly keys: Keys;
  readonly head: Head;
  /** Epoch of the last run. */
  readonly epoch: number;
  readonly evaluatedAt: number | null;
  readonly aliveAt: number | null;
  /** Number of its rows, for the progress of a move. */
  readonly total: Pick<Moved, "audit" | "readings">;
  /** Readings before this minute are thinned out. */
  readonly thinnedMinute: number;
  readonly rows: () => AsyncIterable<MovedRows>;
  /** Throws `NotMoved` where another process may have changed the state meanwhile. Called last. */
  readonly check: () => Promise<void>;
}

/** Counts of the values that were stored in the new place. */
export interface Moved {
  /** Rows of the record. */
  readonly audit: number;
  readonly readings: number;
  /** Events, commands, holds, reports and other values. */
  readonly bodies: number;
}

/** A state cannot be moved. The message is for a person. */
export class NotMoved extends Error {}

/** Rows of one step. */
export const MOVED_AT_ONCE = 500;
/** Characters of one step. An event may have 1 MB. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

/** Groups rows into steps. The text of a row is in its columns. */
export function* inSteps<T extends object>(rows: Iterable<T>): Generator<readonly T[]> {
  let step: T[] = [];
  let characters = 0;
  for (const row of rows) {
    step.push(row);
    for (const value of Object.values(row)) if (typeof value === "string") characters += value.length;
    if (step.length < MOVED_AT_ONCE && characters < MOST_CHARACTERS) continue;
    yield step;
    step = [];
    characters = 0;
  }
  if (step.length > 0) yield step;
}

/** Interval of lines about a long move, ms. */
const PRINT_EVERY_MS = 5_000;

/** Prints how far a long move is. A short move prints nothing. */
export class MoveProgress {
  readonly #print: (line: string) => void;
  readonly #monotonic: () => number;
  readonly #began: number;
  #printedAt: number;

  constructor(print: (line: string) => void, monotonic: () => number) {
    this.#print = print;
    this.#monotonic = monotonic;
    this.#began = monotonic();
    this.#printedAt = this.#began;
  }

  /** Called after each step. */
  step(doing: string): void {
    const at = this.#monotonic();
    if (at - this.#printedAt < PRINT_EVERY_MS) return;
    this.#printedAt = at;
    this.#print(`after ${Math.round((at - this.#began) / 1_000)} s: ${doing}`);
  }

  copied({ audit, readings }: Moved, { total }: MovedState): void {
    this.step(
      `copied: ${audit} of ${total.audit} rows of the record, ${readings} of ${total.readings} readings`,
    );
  }
}

export const VERIFYING = "the state is being verified";
export const VERIFYING_COPY = "the copy is being verified";

/** Counts what is stored. */
export class MovedCount implements Moved {
  audit = 0;
  readings = 0;
  bodies = 0;

  add({ table, rows }: MovedRows): void {
    if (table === "audit") this.audit += rows.length;
    if (table === "reading") this.readings += rows.length;
    if (table === "body") this.bodies += rows.length;
  }
}
