import type { Change } from "../domain/changes.ts";
import type { StoreStats, Broken } from "../domain/store.ts";

/** Reason why the state cannot be used, or why a commit failed. */
export interface Fault {
  /** `full`: no room, nothing else is wrong. `damaged`: the state cannot be trusted. `refused`: a person has to act. */
  readonly kind: "full" | "damaged" | "refused";
  readonly reason: string;
  /** Present if the audit record itself is broken. */
  readonly broken?: Broken;
}

export const damaged = (reason: string): Fault => ({ kind: "damaged", reason });

export const refused = (reason: string): Fault => ({ kind: "refused", reason });

/** Reason why the state of another version is not used, by the schema of the state and of this program. */
export const otherVersion = (found: number, known: number): string =>
  found > known
    ? `this state was written by a newer setpointd (schema ${found}; this one knows up to ${known}): start the newer one`
    : `this state was written by an older setpointd (schema ${found}; this one makes ${known}): use that one, or start this one, which upgrades it for good`;

/** The message of a file system error ("EACCES: permission denied, ..."). Any other error is a bug and is rethrown. */
export function fileFault(error: unknown): Fault {
  if (error instanceof Error && "syscall" in error) return refused(error.message);
  throw error;
}

/**
 * Limit of unstored changes in memory. It is reached if the disk fails for days, or if a charger disconnects
 * all the time.
 */
export const MOST_UNSTORED = 10_000;

/**
 * Changes that must survive a failed commit. They are added to each later commit, before newer changes, until
 * one succeeds. Rows of silences, outages and the daemon cannot be derived again, so they are always kept.
 * Any other change is kept only on request.
 */
export class Unstored {
  readonly #asked = new Set<Change>();
  #waiting: readonly Change[] = [];
  #dropped: readonly Change[] = [];
  #stored = Promise.withResolvers<void>();

  /** Changes of failed commits, oldest first. */
  get waiting(): readonly Change[] {
    return this.#waiting;
  }

  /** Resolves once these staged changes, and all that were kept with them, are stored. */
  keep(changes: readonly Change[]): Promise<void> {
    for (const change of changes) this.#asked.add(change);
    return this.#stored.promise;
  }

  /** A commit of these changes failed. `areFound`: they are stored all the same. Returns how many are dropped for good. */
  failed(changes: readonly Change[], areFound = false): number {
    this.#waiting = changes
      .filter((change) => this.#asked.has(change) || isFact(change))
      .slice(0, MOST_UNSTORED);
    const waiting = new Set(this.#waiting);
    const dropped = changes.filter((change) => !waiting.has(change));
    // Changes beyond the limit are forgotten as well: a disk that fails for days would fill the memory.
    for (const change of dropped) this.#asked.delete(change);
    this.#dropped = [...this.#dropped, ...dropped];
    if (areFound) this.succeeded(this.#waiting);
    return dropped.length;
  }

  /** Changes dropped for good since the last call. */
  takeDropped(): readonly Change[] {
    const dropped = this.#dropped;
    this.#dropped = [];
    return dropped;
  }

  /** A commit of these changes, with all that waited, succeeded. Others may be staged since: they are kept on. */
  succeeded(changes: readonly Change[]): void {
    this.#waiting = [];
    for (const change of changes) this.#asked.delete(change);
    if (this.#asked.size > 0) return;
    this.#stored.resolve();
    this.#stored = Promise.withResolvers();
  }
}

const isFact = (change: Change): boolean =>
  change.kind === "audit" && (change.entry.kind === "silence" || change.entry.kind === "daemon");

export const isFault = (outcome: object): outcome is Fault => "kind" in outcome && "reason" in outcome;

/** Counts commits, and measures how long they have been failing. */
export class CommitStats {
  readonly #monotonic: () => number;
  #failures = 0;
  #longestCommitMs = 0;
  #failing: { readonly reason: string; readonly since: number } | null = null;

  /** `monotonic` in ms. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** `fault`: reason of a failed commit. Null: the commit succeeded. */
  count(tookMs: number, fault: string | null): void {
    this.#longestCommitMs = Math.max(this.#longestCommitMs, tookMs);
    if (fault === null) {
      this.#failing = null;
      return;
    }
    this.#failures += 1;
    this.#failing = { reason: fault, since: this.#failing?.since ?? this.#monotonic() };
  }

  view(): Pick<StoreStats, "failures" | "longestCommitMs" | "failing"> {
    const failing = this.#failing && {
      reason: this.#failing.reason,
      forMs: Math.round(this.#monotonic() - this.#failing.since),
    };
    return { failures: this.#failures, longestCommitMs: this.#longestCommitMs, failing };
  }
}
