import type { Change } from "../core/ledger.ts";

/** More changes than this are not kept in memory: the disk has refused for days, or a charger comes and goes all the time. */
export const MOST_UNSTORED = 10_000;

/**
 * Changes that a failed commit must not drop. They go into each later commit, before everything newer, until one
 * succeeds. A silence, an outage and the daemon's own doings are facts that nobody finds out a second time: their rows
 * are always kept. Any other change is kept where the caller asks for it.
 */
export class Unstored {
  readonly #asked = new Set<Change>();
  #waiting: readonly Change[] = [];
  #dropped: readonly Change[] = [];
  #stored = Promise.withResolvers<void>();

  /** Dropped by an earlier commit, the oldest first. */
  get waiting(): readonly Change[] {
    return this.#waiting;
  }

  /** Resolves once these changes, which are staged now, are stored. */
  keep(changes: readonly Change[]): Promise<void> {
    for (const change of changes) this.#asked.add(change);
    return this.#stored.promise;
  }

  /** None of these changes was stored. Answers how many are dropped for good. */
  failed(changes: readonly Change[]): number {
    this.#waiting = changes
      .filter((change) => this.#asked.has(change) || isFact(change))
      .slice(0, MOST_UNSTORED);
    const waiting = new Set(this.#waiting);
    this.#dropped = [...this.#dropped, ...changes.filter((change) => !waiting.has(change))];
    return changes.length - this.#waiting.length;
  }

  /** The changes that were dropped for good since the last call, or since the last commit that succeeded. */
  takeDropped(): readonly Change[] {
    const dropped = this.#dropped;
    this.#dropped = [];
    return dropped;
  }

  succeeded(): void {
    this.#waiting = [];
    this.#dropped = [];
    this.#asked.clear();
    this.#stored.resolve();
    this.#stored = Promise.withResolvers();
  }
}

const isFact = (change: Change): boolean =>
  change.kind === "audit" && (change.entry.kind === "silence" || change.entry.kind === "daemon");
