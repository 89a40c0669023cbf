import { AsyncLocalStorage } from "node:async_hooks";
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool, type PoolClient, types } from "pg";
import type { Logger } from "pino";

import { Semaphore } from "../../platform/cooperative.ts";

/** A row by the names of its columns. Numbers are numbers: no column exceeds 2^53. */
export type Row = Readonly<Record<string, string | number | boolean | Uint8Array | null>>;
type Query = (sql: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

/** Time for which a failed connection answers for the next ones, ms. */
const REFUSED_MS = 250;
/** Longest wait for the end of connections, ms. */
const END_WITHIN_MS = 1_000;

export interface DatabaseOptions {
  /** Read for each connection, so that a rotation needs no restart. Never log it. */
  readonly url: () => string;
  readonly schema: string;
  /** Timeout of a statement, ms. */
  readonly patience: number;
  /** Connections that many sites share: their statements wait for a free one. Absent: 4, and that wait has the deadline. */
  readonly connections?: number;
  readonly log: Logger;
}

/**
 * For errors of a connection in use: its statement fails as well. Between two statements, and in the moment in which a new
 * connection is handed over, nothing else takes them.
 */
const ignore = (): void => {};

/**
 * Settings of a connection, whatever its user, the database or the address sets. At a stricter isolation a commit that
 * waits for a renewal of the lease would fail. A statement of a few ms takes 70 ms more where the server compiles it first.
 */
const settingsOf = (schema: string, patience: number): string =>
  `SET search_path = "${schema}"; SET statement_timeout = ${patience}; SET synchronous_commit = on;
   SET default_transaction_isolation = 'read committed'; SET jit = off`;

/** Interval of reads of the size of the database, ms. All sites of a process share one. */
const SIZE_EVERY_MS = 60_000;

/** Connections that several sites may share. */
interface Shared {
  readonly pool: Pool;
  readonly semaphore: Semaphore;
  /** Runs as the process itself: a connection outlives the site whose statement opened it. */
  readonly outside: ReturnType<typeof AsyncLocalStorage.snapshot>;
  size: { readonly at: number; readonly bytes: Promise<number> } | null;
  /** Connections that have their settings and did not end yet. */
  readonly open: Set<PoolClient>;
  /** The last attempt that failed. Null: none failed since a connection was opened. */
  refused: { readonly at: number; readonly error: unknown } | null;
}

/**
 * Connections to the database. Each commit is one statement, so any connection will do. A statement has a deadline at
 * both ends: the network may be cut in one direction only.
 */
export class Database implements AsyncDisposable {
  readonly #shared: Shared;
  readonly #options: DatabaseOptions;
  readonly #isBorrowed: boolean;

  constructor(options: DatabaseOptions, lent?: Shared) {
    const { url, schema, patience, connections, log } = options;
    this.#options = options;
    this.#isBorrowed = lent !== undefined;
    if (lent !== undefined) {
      this.#shared = lent;
      return;
    }
    const pool = new Pool({
      // Settings come by a statement: poolers refuse them at the start of a connection, and an address may bring others.
      verify: (client, done) => {
        const isSet = (): void => {
          this.#shared.open.add(client);
          done();
        };
        client.query(settingsOf(schema, patience)).then(isSet, done);
      },
      application_name: "setpointd",
      max: connections ?? 4,
      // A busy process would need seconds to connect again.
      ...(connections === undefined ? {} : { idleTimeoutMillis: 0 }),
      connectionTimeoutMillis: patience,
      query_timeout: patience,
      keepAlive: true,
      types: { getTypeParser: parserOf },
    });
    // The pool copies its options once, and reads this one for each connection.
    Object.defineProperty(pool.options, "connectionString", { get: url, enumerable: true });
    const semaphore = new Semaphore(connections ?? Number.POSITIVE_INFINITY);
    this.#shared = {
      pool,
      semaphore,
      outside: AsyncLocalStorage.snapshot(),
      size: null,
      open: new Set(),
      refused: null,
    };
    pool.on("connect", (client) => void client.on("error", ignore));
    pool.on("remove", (client) => this.#shared.open.delete(client));
    // An idle connection that breaks is replaced at the next statement.
    pool.on("error", (error) => log.debug({ reason: error.message }, "a connection to the database broke"));
  }

  /** Rows of a statement. The server plans a statement once for each connection. Throws errors of the database. */
  query: Query = async (sql, values = []) => {
    const statement = { name: hash("md5", sql), text: sql, values: [...values] };
    return this.#withClient(async (client) => (await client.query<Row>(statement)).rows);
  };

  /** Resolves with an answer to a statement that changes nothing. Throws errors of the database. */
  async answer(): Promise<void> {
    await this.query("SELECT 1");
  }

  /**
   * True: a pooler lends one connection of the server to several clients. The settings of a client, such as its schema, are
   * those of the others then, and announcements do not arrive. Throws errors of the database.
   */
  async isPooled(): Promise<boolean> {
    // The first one is held: the pool closes an idle one after 10 s, and a pooler then lends its place to the other.
    return this.#withClient(async (client) => {
      const own = await client.query<Row>(BACKEND);
      await using other = new Database(this.#options);
      // A server may have no connection left for it.
      const next = await other.transaction((query) => query(BACKEND)).catch(faultOf);
      return "reason" in next ? false : next[0]?.["pid"] === own.rows[0]?.["pid"];
    });
  }

  /** Opens so many connections: a busy process would need seconds for each later. Throws errors of the database. */
  async open(connections: number): Promise<void> {
    await Promise.all(Array.from({ length: connections }, () => this.answer()));
  }

  /** Size of what all sites have, in bytes. A minute old at most. Throws errors of the database. */
  size(): Promise<number> {
    const { size } = this.#shared;
    const at = performance.now();
    if (size !== null && at - size.at < SIZE_EVERY_MS) return size.bytes;
    const bytes = this.query("SELECT pg_database_size(current_database()) AS bytes").then(([row]) =>
      Number(row?.["bytes"] ?? 0),
    );
    this.#shared.size = { at, bytes };
    bytes.catch(() => (this.#shared.size = null));
    return bytes;
  }

  /** Runs all statements or none. `patience`: timeout of each, ms. Throws errors of the database. */
  transaction<T>(work: (query: Query) => Promise<T>, patience = this.#options.patience): Promise<T> {
    return this.#withClient(async (client) => {
      await client.query("BEGIN");
      if (patience !== this.#options.patience)
        await client.query(`SET LOCAL statement_timeout = ${patience}`);
      const done = await work(async (text, values = []) => {
        const statement = { text, values: [...values], query_timeout: patience };
        return (await client.query<Row>(statement)).rows;
      });
      await client.query("COMMIT");
      return done;
    });
  }

  /** Runs this with a connection. After an error it is closed, and a transaction ends with it. */
  #withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    return this.#shared.semaphore.run(async () => {
      const client = await this.#connect();
      let isDone = false;
      try {
        const done = await work(client);
        isDone = true;
        return done;
      } finally {
        client.release(!isDone);
      }
    });
  }

  /** A free connection, or a new one. Thousands of sites share one failure: each of theirs would cost half a millisecond. */
  async #connect(): Promise<PoolClient> {
    const { pool, outside, open, refused } = this.#shared;
    if (pool.ending) throw Object.assign(new Error(CLOSED), { code: "CLOSED" });
    if (open.size === 0 && refused !== null && performance.now() - refused.at < REFUSED_MS)
      throw refused.error;
    try {
      const client = await outside(() => pool.connect());
      this.#shared.refused = null;
      return client;
    } catch (error) {
      this.#shared.refused = { at: performance.now(), error };
      throw error;
    }
  }

  /** The same connections for a site of many. To dispose of it leaves them open. */
  borrow(): Database {
    return new Database(this.#options, this.#shared);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isBorrowed) return;
    // A connection with a statement on its way ends after it, which takes long where the network is cut.
    await Promise.race([this.#shared.pool.end(), sleep(END_WITHIN_MS, undefined, { ref: false })]);
  }
}

/** The part of the database that belongs to one site, with the key for its checks. */
export interface SiteDatabase {
  /** Connections, or a transaction on one of them. */
  readonly database: Pick<Database, "query">;
  readonly site: string;
  readonly siteKey: Buffer;
}

/** As `SiteDatabase`, for an opened state: its store ends the connections. */
export interface SiteConnections extends SiteDatabase {
  readonly database: Database;
}

const BACKEND = "SELECT pg_backend_pid() AS pid";

const BIGINT = 20;
const CLOSED = "the connections are closed: this process stops, or leads no more";

const parserOf: typeof types.getTypeParser = (oid: number, format?: "text" | "binary") =>
  oid === BIGINT ? Number : types.getTypeParser(oid, format);

/** The reason of an error, and whether the statement is known not to have run. A bug is not called one of the database. */
export interface DatabaseFault {
  readonly reason: string;
  /** SQLSTATE, or the code of the system. Empty: none. */
  readonly code: string;
  /** False: the connection ended before the answer. */
  readonly isCertain: boolean;
}

/** Errors with a code of five characters come from the server, which has rolled back. Of these, class 57P and 08 ended it. */
export function faultOf(error: unknown): DatabaseFault {
  if (!(error instanceof Error)) throw error;
  const code = "code" in error ? String(error.code) : "";
  // No SQLSTATE begins with E, but EPIPE has five characters too.
  const isAnswer = /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) && !code.startsWith("08") && !code.startsWith("57P");
  const reason = error.message === "" ? code : error.message;
  return { reason: isOfDatabase(error) ? `database: ${reason}` : reason, code, isCertain: isAnswer };
}

/**
 * True: the database is away, busy, full or restarting, or ended a deadlock, so the same statement may succeed later.
 * False: a person has to act, or it is a bug. Errors of the library without a code are those of its connection.
 */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? String(error.code) : "";
  return code === ""
    ? /timeout|terminated|connection|not queryable/i.test(error.message)
    : /^(E[A-Z]{3,}|EAI_AGAIN|08...|40...|53...|55P..|57...|25006)$/.test(code);
}

/**
 * True: a person has to act: the database refuses the user, the password or the rights of this process, it lacks its tables,
 * or the certificate of the server is not trusted.
 */
export const isRefusal = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  /^(28...|3D000|3F000|42501|42P01)$|CERT|^UNABLE_TO_|^ERR_TLS_|^HOSTNAME_/.test(String(error.code));

/**
 * True: a process that leads or stands by waits. Its open connections outlive a password or a certificate that is
 * being renewed. A start ends with a refusal, for its person to read.
 */
export const isAwaited = (error: unknown): boolean => isPassing(error) || isRefusal(error);

/** False: an error of the file system, or a bug. A connection that breaks names no port. */
export function isOfDatabase(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return isPassing(error);
  const code = String(error.code);
  return "syscall" in error
    ? "port" in error || "hostname" in error || ["ECONNRESET", "EPIPE", "ETIMEDOUT"].includes(code)
    : !/^ERR_(?!TLS|SSL)/.test(code);
}

/** PostgreSQL stores neither a lone surrogate nor U+0000. The stored text must equal the queried text. */
export const column = (text: string | null): string | null =>
  text === null ? null : text.toWellFormed().replaceAll("\0", "\uFFFD");
