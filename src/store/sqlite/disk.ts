import { statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";

import type { Change } from "../../domain/changes.ts";
import type { Reading } from "../../domain/reading.ts";
import type { Instant, Millis } from "../../domain/units.ts";
import { type Head, HEAD_FILE, sealed, Witness } from "./chain.ts";
import { commitBatch, type CommitBatch, type Writer } from "./commitBatch.ts";
import { type Connection, CHECKPOINT_PAGES, DATABASE } from "./connection.ts";
import { faultOf, refused, type Fault } from "./fault.ts";
import { storedEpoch, type StoredEpoch } from "./lock.ts";
import { isFault, withDatabase, type OpenedDatabase, type Place } from "./openDatabase.ts";
import { countReadings, type KeptReadings, pruneReadings } from "./pruneReadings.ts";
import { putReadings, type ReadingTrust, signReadings, unsignedThrough } from "./readings.ts";
import { Reserve, RESERVE } from "./reserve.ts";
import { verifyTail } from "./verify.ts";

/** The log grows while a copy is made: a forgotten one must not fill the disk, ms. */
const LONGEST_COPY = 10 * 60_000;

const NEARLY_FULL: Fault = { kind: "full", reason: "what room there is on the disk is left to the record" };

/** The open state on disk: the one connection, the lock that guards it, and the witness beside it. */
export class Disk implements Disposable {
  /** Since the start, those of readings and beats included. */
  commits = 0;
  readonly #place: Place;
  readonly #epoch: number;
  readonly #lock: DatabaseSync;
  readonly #witness: Witness;
  readonly #reserve: Reserve;
  readonly #log: Logger;
  #connection: Connection | null;
  #head: Head;
  #isClosed = false;
  /** A commit failed for another reason than room. */
  #isSuspect = false;
  /** Set while the files are being copied. */
  #still: NodeJS.Timeout | null = null;

  constructor(place: Place, lock: DatabaseSync, booted: OpenedDatabase, epoch: number, log: Logger) {
    this.#place = place;
    this.#epoch = epoch;
    this.#lock = lock;
    this.#witness = new Witness(join(place.directory, HEAD_FILE));
    this.#reserve = new Reserve(join(place.directory, RESERVE), log);
    this.#log = log;
    this.#connection = booted.connection;
    this.#head = booted.head;
  }

  /**
   * All of it, or none. A full disk gives its reserve first, and is tried again as it is after that; after any other
   * fault the database is opened anew.
   */
  commit(changes: readonly Change[]): CommitBatch | Fault {
    return this.#insist((connection) => {
      const turn = commitBatch(connection, this.#writer, this.#head, changes);
      this.#head = turn.head;
      if (turn.sealed !== null) this.#witness.saw(turn.sealed);
      return turn;
    });
  }

  /** One small commit that leaves the record alone, to find out whether commits work. Null: they do. */
  beat(at: Instant): Fault | null {
    const beaten = this.#insist((connection) => connection.putMeta.run("beat", String(at)));
    return isFault(beaten) ? beaten : null;
  }

  /**
   * From now on the database file stays as it is and only its log grows, so that both can be copied by anyone while
   * commits go on. Ends with `copied`, or by itself. False: another copy is being made.
   */
  keepStill(): boolean {
    if (this.#still !== null) return false;
    this.connection.database.exec("PRAGMA wal_autocheckpoint = 0");
    this.#still = setTimeout(() => this.copied(), LONGEST_COPY).unref();
    return true;
  }

  /** False: the file did not stay as it was, the copy is worth nothing. */
  copied(): boolean {
    if (this.#still === null) return false;
    clearTimeout(this.#still);
    this.#still = null;
    this.connection.database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    return true;
  }

  /**
   * In a commit of their own, so that a decision neither waits for readings nor is lost with them; and not in the room
   * that is reserved for decisions. Null: they are kept.
   */
  keepReadings(readings: readonly Reading[]): Fault | null {
    if (!this.#reserve.hold()) return NEARLY_FULL;
    const written = this.#apart((connection) => {
      countReadings(connection, putReadings(connection.database, this.#place.siteKey, readings));
      return {};
    });
    return isFault(written) ? written : null;
  }

  /** One small step of tidying. */
  pruneReadings(now: Instant, keep: Millis | null, most: number): KeptReadings | Fault {
    return this.#apart((connection) => {
      const kept = pruneReadings(connection, now, keep, most);
      signReadings(connection, this.#place.siteKey);
      return kept;
    });
  }

  #apart<T extends object>(write: (connection: Connection) => T): T | Fault {
    return this.#counted((connection) => inTransaction(connection.database, () => write(connection)));
  }

  #insist<T extends object>(write: (connection: Connection) => T): T | Fault {
    const written = this.#counted(write);
    return isFault(written) && written.kind === "full" && this.#reserve.give()
      ? this.#counted(write)
      : written;
  }

  #counted<T extends object>(write: (connection: Connection) => T): T | Fault {
    const written = this.#write(write);
    if (!isFault(written)) this.commits += 1;
    return written;
  }

  #write<T extends object>(write: (connection: Connection) => T): T | Fault {
    const connection = this.#sound();
    if (isFault(connection)) return connection;
    try {
      return write(connection);
    } catch (error) {
      const fault = faultOf(error);
      if (fault.kind !== "full") this.#isSuspect = true;
      return fault;
    }
  }

  /** After a failed fsync nobody knows what the cache still holds: only a new look at the file tells (F07). */
  #sound(): Connection | Fault {
    if (this.#isClosed) return refused("the store is closed");
    if (this.#connection === null || !this.#isSuspect) return this.#connection ?? this.#reopen();
    // A file system that has turned read-only could not be opened again, not even for reading (F06).
    if (!this.#witness.saw(sealed(this.#place.siteKey, this.#head, this.#epoch)))
      return refused("the file system takes no writes");
    this.#close();
    return this.#reopen();
  }

  /** As it stands in its file now. */
  get storedEpoch(): StoredEpoch | null {
    return storedEpoch(this.#place.directory, this.#place.siteKey);
  }

  /** What stored readings are checked with. */
  get readingTrust(): ReadingTrust {
    const { siteKey } = this.#place;
    return { siteKey, unsignedThrough: unsignedThrough(this.connection, siteKey) };
  }

  get #writer(): Writer {
    return { siteKey: this.#place.siteKey, epoch: this.#epoch };
  }

  /** Of the last commit that added to the record. */
  get head(): Head {
    return this.#head;
  }

  /** For reading. Throws where the disk cannot be read. */
  get connection(): Connection {
    const connection = this.#sound();
    if (!isFault(connection)) return connection;
    if (this.#connection === null) throw new Error(connection.reason);
    return this.#connection;
  }

  /** Of the database with its write-ahead log. By name, not by opening it: closing a second descriptor drops the lock. */
  get bytes(): number {
    const path = join(this.#place.directory, DATABASE);
    return sizeOf(path) + sizeOf(`${path}-wal`);
  }

  #reopen(): Connection | Fault {
    const { siteKey } = this.#place;
    const found = withDatabase(this.#place, (connection) => {
      const head = verifyTail(connection, siteKey, this.#head);
      return isFault(head) ? head : { connection, head };
    });
    if (isFault(found)) return found;
    this.#log.warn({ row: found.head.seq }, "database opened again after a fault");
    this.#connection = found.connection;
    this.#isSuspect = false;
    // A commit whose sync failed may be there after all: whole, like any other.
    this.#head = found.head;
    return found.connection;
  }

  #close(): void {
    // Closing writes the log into the file: what was copied until now does not fit together.
    if (this.#still !== null) clearTimeout(this.#still);
    this.#still = null;
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

export function inTransaction<T>(database: DatabaseSync, write: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const written = write();
    database.exec("COMMIT");
    return written;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
