import { statSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Logger } from "pino";
import type { Change } from "../core/ledger.ts";
import type { Instant } from "../core/units.ts";
import { isFault, withDatabase, type Booted, type Place } from "./boot.ts";
import type { Head } from "./chain.ts";
import type { Connection } from "./connection.ts";
import { DATABASE } from "./database.ts";
import { faultOf, type Fault } from "./fault.ts";
import { HEAD_FILE, Witness } from "./head.ts";
import { commitTurn, type Turn } from "./turn.ts";
import { verifyTail } from "./verify.ts";

/** The open state on disk: the one connection, the lock that guards it, and the witness beside it. */
export class Disk implements Disposable {
  readonly #place: Place;
  readonly #lock: DatabaseSync;
  readonly #witness: Witness;
  readonly #log: Logger;
  #connection: Connection | null;
  #head: Head;

  constructor(place: Place, lock: DatabaseSync, booted: Booted, log: Logger) {
    this.#place = place;
    this.#lock = lock;
    this.#witness = new Witness(join(place.directory, HEAD_FILE), place.siteKey);
    this.#log = log;
    this.#connection = booted.connection;
    this.#head = booted.head;
  }

  /** All of it, or none. A full disk is tried again as it is; after any other fault the database is opened anew. */
  commit(changes: readonly Change[]): Turn | Fault {
    return this.#write((connection) => {
      const turn = commitTurn(connection, this.#place.siteKey, this.#head, changes);
      this.#head = turn.head;
      if (turn.rows.length > 0) this.#witness.saw(turn.head);
      return turn;
    });
  }

  /** One small commit that leaves the record alone, to find out whether commits work. Null: they do. */
  beat(at: Instant): Fault | null {
    const beaten = this.#write((connection) => connection.putMeta.run("beat", String(at)));
    return isFault(beaten) ? beaten : null;
  }

  #write<T extends object>(write: (connection: Connection) => T): T | Fault {
    const connection = this.#connection ?? this.#reopen();
    if (isFault(connection)) return connection;
    try {
      return write(connection);
    } catch (error) {
      const fault = faultOf(error);
      // After a failed fsync nobody knows what the cache still holds: only a new look at the file tells (F07).
      if (fault.kind !== "full") this.#close();
      return fault;
    }
  }

  /** For reading. Throws where the disk cannot be read. */
  get connection(): Connection {
    const connection = this.#connection ?? this.#reopen();
    if (isFault(connection)) throw new Error(connection.reason);
    return connection;
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
    // A commit whose sync failed may be there after all: whole, like any other.
    this.#head = found.head;
    return found.connection;
  }

  #close(): void {
    this.#connection?.database.close();
    this.#connection = null;
  }

  [Symbol.dispose](): void {
    this.#close();
    this.#witness[Symbol.dispose]();
    this.#lock.close();
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
