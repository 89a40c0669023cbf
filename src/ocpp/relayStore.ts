import { DatabaseSync } from "node:sqlite";

import type { Logger } from "pino";

import { millis } from "../domain/units.ts";
import { messageOf } from "../platform/text.ts";
import type { Dialect } from "./wire/dialect.ts";
import type { ForeignProfile } from "./wire/foreignProfile.ts";
import type { Payload, Reply } from "./wire/frame.ts";

/** A message for the upstream that was answered here. */
export interface StoredMessage {
  readonly seq: number;
  readonly action: string;
  readonly payload: string;
  /** Transaction id that we gave. Null: it starts none. */
  readonly localTransaction: string | null;
  /** Id under which the upstream may have received it before. Null: it was never sent. */
  readonly sentAs: string | null;
}

/** An answer to the start or the stop of a transaction, as the charger got it. */
interface Remembered {
  readonly action: string;
  readonly payload: string;
  /** Payload of the answer. */
  readonly answer: string;
  /** Transaction id in the answer. Null: none. */
  readonly transaction: string | null;
}

interface Renamed {
  readonly station: string;
  readonly local: string;
  readonly upstream: string;
}

const SELECT = "SELECT seq, action, payload, local_transaction, sent_as FROM message WHERE station = ?";
/** Messages of one station. Above it a charger that floods fills the disk: two days of one reading each 10 s. */
const MOST_STORED = 20_000;
/** Translated transactions that are kept per station. Chargers name old ones in late messages. */
const MOST_RENAMED = 200;
/** Pause before a message that the upstream has answered is removed again, where the disk fails. */
export const NEXT_REMOVAL = millis(5_000);
/** Answers that are kept per station. A charger repeats what it sent last. */
const MOST_REMEMBERED = 50;

/**
 * Messages of transactions that the upstream has not answered yet, transaction ids that differ there, the latest answers
 * to starts and stops, and the upstream's charging profiles. On disk.
 */
export class RelayStore implements Disposable {
  readonly #database: DatabaseSync;
  /** Messages by station. Counted here, because each message of a transaction asks for it. */
  readonly #waiting: Map<string, number>;

  constructor(file: string) {
    this.#database = new DatabaseSync(file);
    this.#database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      CREATE TABLE IF NOT EXISTS message (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, station TEXT NOT NULL, action TEXT NOT NULL, payload TEXT NOT NULL,
        local_transaction TEXT, sent_as TEXT
      ) STRICT;
      CREATE INDEX IF NOT EXISTS message_of_station ON message (station, seq);
      CREATE INDEX IF NOT EXISTS message_of_content ON message (station, action, payload);
      CREATE TABLE IF NOT EXISTS renamed (
        station TEXT NOT NULL, local TEXT NOT NULL, upstream TEXT NOT NULL, PRIMARY KEY (station, local)
      ) STRICT;
      CREATE TABLE IF NOT EXISTS remembered (
        station TEXT NOT NULL, action TEXT NOT NULL, payload TEXT NOT NULL, answer TEXT NOT NULL, transaction_id TEXT,
        PRIMARY KEY (station, action, payload)
      ) STRICT;
      CREATE TABLE IF NOT EXISTS profiles (station TEXT PRIMARY KEY, list TEXT NOT NULL) STRICT;
    `);
    const columns = this.#database.prepare("SELECT name FROM pragma_table_info('message')").all();
    if (!columns.some(({ name }) => name === "sent_as"))
      this.#database.exec("ALTER TABLE message ADD COLUMN sent_as TEXT");
    const stored = this.#database.prepare(
      "SELECT station, count(*) AS waiting FROM message GROUP BY station",
    );
    this.#waiting = new Map(stored.all().map(({ station, waiting }) => [String(station), Number(waiting)]));
  }

  /** Written to disk when it returns. */
  add(station: string, { action, payload, localTransaction, sentAs }: Omit<StoredMessage, "seq">): number {
    const { lastInsertRowid } = this.#database
      .prepare(
        "INSERT INTO message (station, action, payload, local_transaction, sent_as) VALUES (?, ?, ?, ?, ?)",
      )
      .run(station, action, payload, localTransaction, sentAs);
    this.#waiting.set(station, this.count(station) + 1);
    return Number(lastInsertRowid);
  }

  /** Keeps an answer for the charger that repeats its message. Written to disk when it returns. */
  remember(station: string, { action, payload, answer, transaction }: Remembered): void {
    this.#database
      .prepare(
        "INSERT OR REPLACE INTO remembered (station, action, payload, answer, transaction_id) VALUES (?, ?, ?, ?, ?)",
      )
      .run(station, action, payload, answer, transaction);
    this.#database
      .prepare(
        "DELETE FROM remembered WHERE station = ?1 AND rowid NOT IN (SELECT rowid FROM remembered WHERE station = ?1 ORDER BY rowid DESC LIMIT ?2)",
      )
      .run(station, MOST_REMEMBERED);
  }

  /** Payload of the answer to an earlier message with this content. Null: none. */
  remembered(station: string, action: string, payload: string): string | null {
    const row = this.#database
      .prepare("SELECT answer FROM remembered WHERE station = ? AND action = ? AND payload = ?")
      .get(station, action, payload);
    return row === undefined ? null : String(row["answer"]);
  }

  /** The transaction has ended: a start with the same content would be another one. */
  forgetStart(station: string, transaction: string): void {
    this.#database
      .prepare("DELETE FROM remembered WHERE station = ? AND transaction_id = ?")
      .run(station, transaction);
  }

  /** The upstream gave a transaction the id of one of ours. */
  forgetRenamed(station: string, local: string): void {
    this.#database.prepare("DELETE FROM renamed WHERE station = ? AND local = ?").run(station, local);
  }

  /** A waiting message with this content. Null: none. */
  find(station: string, action: string, payload: string): StoredMessage | null {
    return this.#read(
      `${SELECT} AND action = ? AND payload = ? ORDER BY seq LIMIT 1`,
      station,
      action,
      payload,
    );
  }

  /** The oldest message of a station. Null: none waits. */
  first(station: string): StoredMessage | null {
    return this.#read(`${SELECT} ORDER BY seq LIMIT 1`, station);
  }

  /**
   * Removes a delivered message. `renamed`: the id that the upstream gave its transaction. One commit, so a message that
   * is delivered again after a crash does not leave two ids.
   */
  remove(seq: number, renamed: Renamed | null): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      const row = this.#database.prepare("DELETE FROM message WHERE seq = ? RETURNING station").get(seq);
      if (renamed !== null) this.#rename(renamed);
      this.#database.exec("COMMIT");
      const station = String(row?.["station"] ?? "");
      this.#waiting.set(station, Math.max(0, this.count(station) - 1));
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  count(station: string): number {
    return this.#waiting.get(station) ?? 0;
  }

  /** True: no more readings of this station are to be added. */
  isFull(station: string): boolean {
    return this.count(station) >= MOST_STORED;
  }

  /** Ids at the upstream by our ids. */
  renamed(station: string): ReadonlyMap<string, string> {
    const rows = this.#database.prepare("SELECT local, upstream FROM renamed WHERE station = ?").all(station);
    return new Map(rows.map(({ local, upstream }) => [String(local), String(upstream)]));
  }

  /** Charging profiles of the upstream in a station, as far as they are known. */
  profiles(station: string): readonly ForeignProfile[] {
    const row = this.#database.prepare("SELECT list FROM profiles WHERE station = ?").get(station);
    return row === undefined ? [] : (JSON.parse(String(row["list"])) as readonly ForeignProfile[]);
  }

  keepProfiles(station: string, profiles: readonly ForeignProfile[]): void {
    this.#database
      .prepare("INSERT OR REPLACE INTO profiles (station, list) VALUES (?, ?)")
      .run(station, JSON.stringify(profiles));
  }

  #rename({ station, local, upstream }: Renamed): void {
    this.#database
      .prepare("INSERT OR REPLACE INTO renamed (station, local, upstream) VALUES (?, ?, ?)")
      .run(station, local, upstream);
    this.#database
      .prepare(
        "DELETE FROM renamed WHERE station = ?1 AND rowid NOT IN (SELECT rowid FROM renamed WHERE station = ?1 ORDER BY rowid DESC LIMIT ?2)",
      )
      .run(station, MOST_RENAMED);
  }

  #read(sql: string, ...values: readonly string[]): StoredMessage | null {
    const row = this.#database.prepare(sql).get(...values);
    if (row === undefined) return null;
    const { seq, action, payload, local_transaction: local, sent_as: sentAs } = row;
    return {
      seq: Number(seq),
      action: String(action),
      payload: String(payload),
      localTransaction: textOf(local),
      sentAs: textOf(sentAs),
    };
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

const textOf = (value: unknown): string | null => (typeof value === "string" ? value : null);

/** Transactions that the charger knows by an id of ours, and the upstream by its own. */
export class TransactionNames {
  readonly #store: RelayStore;
  readonly #station: string;
  readonly #dialect: Dialect;
  readonly #log: Logger;
  /** Ids at the upstream by those that the bridge gave. */
  #renamed: ReadonlyMap<string, string>;

  constructor(store: RelayStore, station: string, dialect: Dialect, log: Logger) {
    this.#store = store;
    this.#station = station;
    this.#dialect = dialect;
    this.#log = log;
    this.#renamed = store.renamed(station);
  }

  /** The payload with the other system's id. Unchanged where it names no transaction of ours. */
  forUpstream(payload: Payload): Payload {
    return this.#dialect.renameTransaction(payload, this.#renamed);
  }

  /** The payload with our id. Unchanged where it names no transaction that the charger knows by an id of ours. */
  forStation(payload: Payload): Payload {
    const local = new Map([...this.#renamed].map(([ours, theirs]) => [theirs, ours]));
    return this.#dialect.renameTransaction(payload, local);
  }

  /**
   * A stored message was answered: it is removed, and the upstream's id of its transaction is kept. False: the disk fails,
   * and the message is still there.
   */
  onDelivered({ seq, localTransaction: local }: StoredMessage, reply: Reply): boolean {
    const upstream = reply.ok && local !== null ? this.#dialect.transactionIn(reply.payload) : null;
    const isRenamed = upstream !== null && upstream !== local;
    const renamed = isRenamed ? { station: this.#station, local: local ?? "", upstream } : null;
    return this.#tried("a delivered message cannot be removed", () => {
      this.#store.remove(seq, renamed);
      if (isRenamed) this.#renamed = this.#store.renamed(this.#station);
    });
  }

  /** The upstream answered a charger. A transaction of its with the id of one of ours is not translated. */
  onAnswered(reply: Reply): void {
    const id = reply.ok ? this.#dialect.transactionIn(reply.payload) : null;
    if (id === null || !this.#renamed.has(id)) return;
    this.#renamed = new Map([...this.#renamed].filter(([ours]) => ours !== id));
    this.#tried("the former id of a transaction cannot be removed", () =>
      this.#store.forgetRenamed(this.#station, id),
    );
  }

  /** False: the disk fails. */
  #tried(fault: string, step: () => void): boolean {
    try {
      step();
      return true;
    } catch (error) {
      this.#log.error({ station: this.#station, reason: messageOf(error) }, fault);
      return false;
    }
  }
}
