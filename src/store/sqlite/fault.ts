import type { Change } from "../../domain/changes.ts";

/** Why the state cannot be used, or a commit did not happen. */
export interface Fault {
  /** `full`: nothing is wrong but the room. `damaged`: not to be trusted. `refused`: for a person to settle. */
  readonly kind: "full" | "damaged" | "refused";
  readonly reason: string;
  /** Where it is the record that does not hold. */
  readonly broken?: Broken;
}

/** `seq`: the first row of the record that is not what it should be; null: the fault lies beside the record. */
export interface Broken {
  readonly ok: false;
  readonly seq: number | null;
  readonly reason: string;
}

export const damaged = (reason: string): Fault => ({ kind: "damaged", reason });
export const refused = (reason: string): Fault => ({ kind: "refused", reason });

const BUSY = 5;
const LOCKED = 6;
const NOMEM = 7;
const IOERR = 10;
const FULL = 13;
const CANTOPEN = 14;
/** Extended code: the file ends before its time. */
const SHORT_READ = 522;

/**
 * What an error of SQLite means for the state; anything else is a bug and is thrown on. What only damage can
 * cause in SQL that never changes, such as a table that is not there, counts as damage.
 */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof Error) || !("code" in error)) throw error;
  const reason = error.message;
  // A number in a row that no JavaScript number holds: we never wrote one.
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

/** A lock that somebody else holds. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === BUSY;

/** The words of a file system error ("EACCES: permission denied, ..."); anything else is a bug and is thrown on. */
export function fileFault(error: unknown): Fault {
  if (error instanceof Error && "syscall" in error) return refused(error.message);
  throw error;
}

/** The disk has no room: said by SQLite, or by the file system. */
export const isFull = (error: unknown): boolean =>
  error instanceof Error &&
  (("errcode" in error && (Number(error.errcode) & 0xff) === FULL) ||
    ("code" in error && error.code === "ENOSPC"));

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
