import { statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";

import type { Change } from "../../domain/changes.ts";
import type { Reading } from "../../domain/reading.ts";
import type { KeptReadings } from "../../domain/store.ts";
import type { Instant, Millis } from "../../domain/units.ts";
import { type Head, sealed } from "../chain.ts";
import { refused, type Fault, isFault } from "../fault.ts";
import { DATABASE, HEAD_FILE, Witness } from "../files.ts";
import { commitBatch, type CommitBatch, type Writer } from "./commitBatch.ts";
import { type Connection, CHECKPOINT_PAGES, inTransaction } from "./connection.ts";
import { faultOf } from "./fault.ts";
import { storedEpoch, type StoredEpoch, storeEpoch } from "./lock.ts";
import { withDatabase, type OpenedDatabase, type Place } from "./openDatabase.ts";
import {
  putReadings,
  type ReadingTrust,
  signReadings,
  unsignedThrough,
  countReadings,
  pruneReadings,
} from "./readings.ts";
import { Reserve, RESERVE, roomIn } from "./reserve.ts";
import { verifyTail } from "./verify.ts";

/** Limit of a copy, ms. The log grows meanwhile, and an abandoned copy must not fill the disk. */
const LONGEST_COPY = 10 * 60_000;

/**
 * Rows verified when the database is opened again. A failed sync loses the end of the log only, and a broken disk is
 * tried each few seconds. The next start verifies more.
 */
const REOPENED_TAIL = 100;

const GONE = refused(
  "the files of the state folder are gone: put them back, or start setpointd again with a new state",
);

const REPLACED = refused("the files of the state folder are others than those in use: start setpointd again");

const NEARLY_FULL: Fault = { kind: "full", reason: "what room there is on the disk is left to the record" };

/** The open state on disk: the only connection, its lock, and the witness file. */
export class Disk implements Disposable {
  /** Commits since the start, readings and beats included. */
  commits = 0;
  readonly #place: Place;
  readonly #epoch: number;
  /** The epoch of this run is stored. False: the disk was full at the start. */
  #isRunStored: boolean;
  readonly #lock: DatabaseSync;
  readonly #witness: Witness;
  readonly #reserve: Reserve;
  readonly #log: Logger;
  #connection: Connection | null;
  #head: Head;
  #isClosed = false;
  /** Inode of the open file. Null: the file system did not tell. */
  #file: number | null;
  /** A commit failed for another reason than a full disk. */
  #isSuspect = false;
  /** A commit whose sync failed was found in the file. */
  #isFound = false;
  /** Set while the files are copied. */
  #copyTimer: NodeJS.Timeout | null = null;

  constructor(
    place: Place,
    lock: DatabaseSync,
    opened: OpenedDatabase,
    run: { readonly epoch: number; readonly isStored: boolean },
    log: Logger,
  ) {
    this.#place = place;
    this.#epoch = run.epoch;
    this.#isRunStored = run.isStored;
    this.#lock = lock;
    this.#witness = new Witness(join(place.directory, HEAD_FILE));
    this.#reserve = new Reserve(join(place.directory, RESERVE), log);
    this.#log = log;
    this.#connection = opened.connection;
    this.#head = opened.head;
    this.#file = inodeOf(this.#path) ?? null;
  }

  get #path(): string {
    return join(this.#place.directory, DATABASE);
  }

  /**
   * Commits all changes or none. On a full disk the reserve is released, and the commit is tried once more.
   * After any other fault the database is reopened.
   */
  commit(changes: readonly Change[]): CommitBatch | Fault {
    return this.#withReserve((connection) => {
      const batch = commitBatch(connection, this.#writer, this.#head, changes);
      this.#head = batch.head;
      if (batch.sealed !== null) this.#witness.write(batch.sealed);
      return batch;
    });
  }

  /** True: the rows of the commit that failed just now are in the file. It is opened again to see that. */
  isFoundStored(): boolean {
    this.#isFound = false;
    this.#usableConnection();
    return this.#isFound;
  }

  /** A small commit without an audit row, to test that commits work. Null: they work. */
  beat(at: Instant): Fault | null {
    const written = this.#withReserve((connection) => connection.putMeta.run("beat", String(at)));
    return isFault(written) ? written : null;
  }

  /**
   * Freezes the database file: only its log grows, so both can be copied while commits go on. Ends with
   * `copied`, or after `LONGEST_COPY`. False: another copy is in progress.
   */
  beginCopy(): boolean {
    if (this.#copyTimer !== null) return false;
    this.connection.database.exec("PRAGMA wal_autocheckpoint = 0");
    this.#copyTimer = setTimeout(() => this.endCopy(), LONGEST_COPY).unref();
    return true;
  }

  /** False: the file was not frozen all the time, so the copy is invalid. */
  endCopy(): boolean {
    if (this.#copyTimer === null) return false;
    clearTimeout(this.#copyTimer);
    this.#copyTimer = null;
    this.connection.database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    return true;
  }

  /**
   * Commits readings separately: decisions do not wait for them, and a failure drops no decision. The reserve
   * is not used for them. Null: stored.
   */
  keepReadings(readings: readonly Reading[]): Fault | null {
    if (!this.#reserve.ensure()) return NEARLY_FULL;
    const written = this.#inOwnTransaction((connection) => {
      countReadings(connection, putReadings(connection.database, this.#place.siteKey, readings));
      return {};
    });
    return isFault(written) ? written : null;
  }

  /** A short step of pruning readings and signing old ones. */
  pruneReadings(now: Instant, keep: Millis | null, most: number): KeptReadings | Fault {
    return this.#inOwnTransaction((connection) => {
      const kept = pruneReadings(connection, now, keep, most);
      signReadings(connection, this.#place.siteKey);
      return kept;
    });
  }

  #inOwnTransaction<T extends object>(write: (connection: Connection) => T): T | Fault {
    return this.#counted((connection) => inTransaction(connection.database, () => write(connection)));
  }

  #withReserve<T extends object>(write: (connection: Connection) => T): T | Fault {
    const written = this.#counted(write);
    return isFault(written) && written.kind === "full" && this.#reserve.release()
      ? this.#counted(write)
      : written;
  }

  #counted<T extends object>(write: (connection: Connection) => T): T | Fault {
    const written = this.#write(write);
    if (!isFault(written)) this.commits += 1;
    return written;
  }

  #write<T extends object>(write: (connection: Connection) => T): T | Fault {
    // A file without its name takes writes until it is closed, and is lost with them.
    const file = inodeOf(this.#path);
    if (file === undefined) return GONE;
    if (file !== null && this.#file !== null && file !== this.#file) return REPLACED;
    const connection = this.#usableConnection();
    if (isFault(connection)) return connection;
    try {
      if (!this.#isRunStored) this.#storeRun(connection);
      return write(connection);
    } catch (error) {
      const fault = faultOf(error);
      if (fault.kind !== "full") this.#isSuspect = true;
      return fault;
    }
  }

  /** The head first: a power cut in between leaves the epoch file behind, never ahead. */
  #storeRun(connection: Connection): void {
    const { directory, siteKey } = this.#place;
    connection.putMeta.run("head", sealed(siteKey, this.#head, this.#epoch));
    storeEpoch(directory, siteKey, this.#epoch);
    this.#isRunStored = true;
  }

  /** After a failed fsync the cache is not reliable: the file has to be opened and read again. */
  #usableConnection(): Connection | Fault {
    if (this.#isClosed) return refused("the store is closed");
    if (this.#connection === null || !this.#isSuspect) return this.#connection ?? this.#reopen();
    // A read-only file system could not be opened again, not even for reading.
    if (!this.#witness.write(sealed(this.#place.siteKey, this.#head, this.#epoch)))
      return refused("the file system takes no writes");
    this.#close();
    return this.#reopen();
  }

  /** The epoch file as it stands now. */
  get storedEpoch(): StoredEpoch | null {
    return storedEpoch(this.#place.directory, this.#place.siteKey);
  }

  /** Key and limit for the checks of stored readings. */
  get readingTrust(): ReadingTrust {
    const { siteKey } = this.#place;
    return { siteKey, unsignedThrough: unsignedThrough(this.connection, siteKey) };
  }

  get #writer(): Writer {
    return { siteKey: this.#place.siteKey, epoch: this.#epoch };
  }

  /** Head after the last commit that added audit rows. */
  get head(): Head {
    return this.#head;
  }

  /** Connection for reading. Throws if the disk cannot be read. */
  get connection(): Connection {
    const connection = this.#usableConnection();
    if (!isFault(connection)) return connection;
    if (this.#connection === null) throw new Error(connection.reason);
    return this.#connection;
  }

  /** Size of the database and its write-ahead log. By name: closing a second descriptor would drop the lock. */
  get bytes(): number {
    return sizeOf(this.#path) + sizeOf(`${this.#path}-wal`);
  }

  /** Bytes that this user may still use. Null: the file system does not report it. */
  get free(): number | null {
    try {
      return roomIn(this.#place.directory);
    } catch {
      return null;
    }
  }

  #reopen(): Connection | Fault {
    const { siteKey } = this.#place;
    const found = withDatabase(this.#place, (connection) => {
      const head = verifyTail(connection, siteKey, this.#head, REOPENED_TAIL);
      return isFault(head) ? head : { connection, head };
    });
    if (isFault(found)) return found;
    this.#log.warn({ row: found.head.seq }, "database opened again after a fault");
    this.#connection = found.connection;
    this.#file = inodeOf(this.#path) ?? null;
    this.#isSuspect = false;
    // A commit whose sync failed may be stored after all, as a whole.
    this.#isFound = found.head.seq > this.#head.seq;
    this.#head = found.head;
    return found.connection;
  }

  #close(): void {
    // Closing writes the log into the file, so a copy in progress becomes inconsistent.
    if (this.#copyTimer !== null) clearTimeout(this.#copyTimer);
    this.#copyTimer = null;
    this.#connection?.database.close();
    this.#connection = null;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#close();
    this.#witness[Symbol.dispose]();
    this.#lock.close();
  }
}

/** Undefined: there is no file. Null: it cannot be looked at, and counts as there. */
function inodeOf(path: string): number | null | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino;
  } catch {
    return null;
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
