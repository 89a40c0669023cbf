import type { Committed, FailedCommit } from "../core/ledger.ts";
import type { ChargerId } from "../core/units.ts";
import type { Freeing } from "./ports.ts";

interface OpenFreeing {
  readonly freeing: Freeing;
  readonly waiting: Set<ChargerId>;
  uncommitted: number;
  failed: FailedCommit | null;
}

/** The part of a freeing that is done together with one slice of evaluations. */
export interface FreeingPart {
  readonly chargers: readonly ChargerId[];
  /** Its commit has ended. */
  readonly settle: (committed: Committed) => void;
}

/** Freeings of many chargers are done in slices. Each is settled after the commit of its last one. */
export class Freeings {
  #open: readonly OpenFreeing[] = [];

  add(freeing: Freeing): void {
    const waiting = new Set(freeing.chargers);
    this.#open = [...this.#open, { freeing, waiting, uncommitted: waiting.size, failed: null }];
  }

  /** What of all freeings is to be done with the evaluation of these chargers. */
  take(chargers: readonly ChargerId[]): readonly FreeingPart[] {
    if (this.#open.length === 0) return NONE;
    const parts = this.#open.map((open) => partOf(open, chargers));
    this.#open = this.#open.filter(({ waiting }) => waiting.size > 0);
    return parts;
  }
}

const NONE: readonly FreeingPart[] = [];

function partOf(open: OpenFreeing, chargers: readonly ChargerId[]): FreeingPart {
  const part = chargers.filter((charger) => open.waiting.delete(charger));
  return {
    chargers: part,
    settle: (committed) => {
      open.uncommitted -= part.length;
      if (!committed.ok) open.failed ??= committed;
      const isDone = open.uncommitted === 0 && (part.length > 0 || open.freeing.chargers.length === 0);
      if (isDone) open.freeing.settle(open.failed ?? committed);
    },
  };
}
