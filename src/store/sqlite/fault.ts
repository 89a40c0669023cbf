import type { Change } from "../../domain/changes.ts";
import type { Broken } from "../../domain/store.ts";

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

const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const IOERR = 10;
const FULL = 13;
const CANTOPEN = 14;
/** Extended code: the file is shorter than expected. */
const SHORT_READ = 522;

/**
 * Translates a SQLite error into a fault; any other error is a bug and is rethrown. Our SQL never changes, so
 * an error such as a missing table counts as damage.
 */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  const reason = error.message;
  // A number too large for JavaScript: we never wrote one.
  if (error.code === "ERR_OUT_OF_RANGE") return damaged(reason);
  if (error.code !== "ERR_SQLITE_ERROR" || !("errcode" in error)) throw error;
  if (error.errcode === SHORT_READ) return damaged(reason);
  switch (Number(error.errcode) & 0xff) {
    case FULL:
      return { kind: "full", reason };
    case BUSY:
    case LOCKED:
    case NOMEM:
    case IOERR:
    case CANTOPEN:
      return refused(reason);
    default:
      return damaged(reason);
  }
}

/** Another process holds the lock. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === BUSY;

/** The message of a file system error ("EACCES: permission denied, ..."). Any other error is a bug and is rethrown. */
export function fileFault(error: unknown): Fault {
  if (error instanceof Error && "syscall" in error) return refused(error.message);
  throw error;
}

/** The disk is full, reported by SQLite or by the file system. */
export const isFull = (error: unknown): boolean =>
  error instanceof Error &&
  (("errcode" in error && (Number(error.errcode) & 0xff) === FULL) ||
    ("code" in error && error.code === "ENOSPC"));

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

  /** Resolves once these staged changes are stored. */
  keep(changes: readonly Change[]): Promise<void> {
    for (const change of changes) this.#asked.add(change);
    return this.#stored.promise;
  }

  /** A commit of these changes failed. Returns how many are dropped for good. */
  failed(changes: readonly Change[]): number {
    this.#waiting = changes
      .filter((change) => this.#asked.has(change) || isFact(change))
      .slice(0, MOST_UNSTORED);
    const waiting = new Set(this.#waiting);
    this.#dropped = [...this.#dropped, ...changes.filter((change) => !waiting.has(change))];
    return changes.length - this.#waiting.length;
  }

  /** Changes dropped for good since the last call. */
  takeDropped(): readonly Change[] {
    const dropped = this.#dropped;
    this.#dropped = [];
    return dropped;
  }

  succeeded(): void {
    this.#waiting = [];
    this.#asked.clear();
    this.#stored.resolve();
    this.#stored = Promise.withResolvers();
  }
}

const isFact = (change: Change): boolean =>
  change.kind === "audit" && (change.entry.kind === "silence" || change.entry.kind === "daemon");

export const isFault = (outcome: object): outcome is Fault => "kind" in outcome && "reason" in outcome;
