import type { Verified } from "../../domain/store.ts";
import { BODY_TABLES } from "../bodies.ts";
import { type Cells, rowText, sealed } from "../chain.ts";
import { prepareDirectory } from "../files.ts";
import { keysFault, placeKeys } from "../keys.ts";
import {
  type Moved,
  MOVED_AT_ONCE,
  type MovedBody,
  MovedCount,
  type MoveProgress,
  type MovedRows,
  type MovedState,
  NotMoved,
  VERIFYING,
  VERIFYING_COPY,
} from "../movedState.ts";
import { foundBody } from "./bodies.ts";
import { Database, faultOf, isOfDatabase, type Row, type SiteDatabase } from "./database.ts";
import { remedyOf } from "./inspect.ts";
import { takeLease } from "./lease.ts";
import type { OpenPostgresOptions } from "./open.ts";
import { rowIn } from "./readings.ts";
import { insertOf } from "./movedRows.ts";
import { migrate } from "./schema.ts";
import { encryptedKeys, keysOf, printsOf } from "./siteKeys.ts";
import { verify } from "./verify.ts";

/** Timeout of one statement, ms. */
const PATIENCE_MS = 60_000;
/** Events and other values of one step. An event may have 1 MB. */
const BODIES_AT_ONCE = 20;

export interface MovedDatabase extends OpenPostgresOptions {
  readonly progress: MoveProgress;
}

/** Runs `work` on the database of a site. Throws `NotMoved` also for errors of the database. */
async function withDatabase<T>(
  options: OpenPostgresOptions,
  work: (database: Database) => Promise<T>,
): Promise<T> {
  await using database = new Database({ ...options, patience: PATIENCE_MS });
  try {
    const reason = await migrate(database, options.schema);
    if (reason !== null) throw new NotMoved(reason);
    return await work(database);
  } catch (error) {
    if (error instanceof NotMoved || !isOfDatabase(error)) throw error;
    const { reason, code } = faultOf(error);
    throw new NotMoved(`state.postgres.url: ${reason}; expected ${remedyOf(code)}`);
  }
}

/** Passes the state of a site to `use`, verified. This process has its lease meanwhile. Throws `NotMoved`. */
export const useDatabase = <T>(options: MovedDatabase, use: (state: MovedState) => Promise<T>): Promise<T> =>
  withDatabase(options, async (database) => {
    const { site, monotonic, progress } = options;
    const [known] = await database.query("SELECT 1 FROM site WHERE id = $1", [site]);
    if (known === undefined) throw new NotMoved(`the site ${site} has no state in this database`);
    const keys = await keysOf(database, options);
    if (typeof keys === "string") throw new NotMoved(keys);
    const lease = await takeLease(database, options, monotonic);
    if (lease === null)
      throw new NotMoved(`another setpointd leads the site ${site} on this database: stop it first`);
    try {
      const from = { database, site, siteKey: keys.siteKey };
      await refuseOpenWork(from);
      const verified = await verifyWhole(database, from, progress, VERIFYING);
      if (!verified.ok) throw new NotMoved(verified.reason);
      const [row] = await database.query("SELECT * FROM site WHERE id = $1", [site]);
      const numberIn = (name: string): number | null => {
        const value = row?.[name];
        return typeof value === "number" ? value : null;
      };
      return await use({
        keys,
        head: { seq: numberIn("head_seq") ?? 0, hash: String(row?.["head_hash"]) },
        epoch: lease.epoch,
        evaluatedAt: numberIn("evaluated_at"),
        aliveAt: numberIn("alive_at"),
        thinnedMinute: numberIn("thinned_minute") ?? 0,
        total: { audit: verified.rows, readings: verified.readings ?? 0 },
        rows: () => rowsIn(from),
        check: async () => {
          if (lease.state !== "leading") throw new NotMoved("the lease of the site was lost meanwhile");
          await refuseOpenWork(from);
        },
      });
    } finally {
      await lease.release();
    }
  });

/** Verifies all of a state, within a transaction if `query` is one. */
const verifyWhole = (
  { query }: Pick<Database, "query">,
  { site, siteKey }: Pick<SiteDatabase, "site" | "siteKey">,
  progress: MoveProgress,
  doing: string,
): Promise<Verified> =>
  verify({
    site,
    siteKey,
    database: {
      query: (sql, values) => {
        progress.step(doing);
        return query(sql, values);
      },
    },
  });

/** A folder has no place for deliveries of stand-ins. A fleet would lead its site again. Throws `NotMoved`. */
async function refuseOpenWork({ database, site }: SiteDatabase): Promise<void> {
  const [row] = await database.query(
    `SELECT (SELECT count(*) FROM delivery WHERE site = $1) AS waiting,
       (SELECT count(*) FROM fleet_site WHERE id = $1 AND file <> '') AS fleet`,
    [site],
  );
  if (Number(row?.["fleet"]) > 0)
    throw new NotMoved(`the site ${site} is in a fleet: setpointd site remove ${site} first`);
  const waiting = Number(row?.["waiting"]);
  if (waiting > 0)
    throw new NotMoved(
      `deliveries that no leader has ingested yet: ${waiting}; stop every stand-in, run setpointd once, and try again`,
    );
}

async function* rowsIn(from: SiteDatabase): AsyncGenerator<MovedRows> {
  const { database, site, siteKey } = from;
  async function* pages(
    sql: string,
    first: readonly unknown[],
    key: (row: Row) => readonly unknown[],
    atOnce = MOVED_AT_ONCE,
  ) {
    for (let after = first; ;) {
      const page = await database.query(`${sql} LIMIT ${atOnce}`, [site, ...after]);
      const last = page.at(-1);
      if (last === undefined) return;
      yield page;
      after = key(last);
    }
  }
  const audit = pages("SELECT * FROM audit WHERE site = $1 AND seq > $2 ORDER BY seq", [0], (row) => [
    row["seq"],
  ]);
  for await (const page of audit) yield { table: "audit", rows: page.map(chainRow) };
  const acknowledged = pages(
    "SELECT * FROM acknowledged WHERE site = $1 AND (charger, seq) > ($2, $3) ORDER BY charger, seq",
    ["", 0],
    (row) => [row["charger"], row["seq"]],
  );
  for await (const page of acknowledged)
    yield {
      table: "acknowledged",
      rows: page.map((row) => [String(row["charger"]), Number(row["seq"])] as const),
    };
  for (const table of BODY_TABLES) {
    const bodies = pages(
      "SELECT id, body, mac, ord, kind FROM body WHERE site = $1 AND kind = $2 AND ord > $3 ORDER BY ord",
      [table, 0],
      (row) => [row["kind"], row["ord"]],
      BODIES_AT_ONCE,
    );
    for await (const page of bodies) {
      const rows = page.map((row): MovedBody => {
        const { id, body } = foundBody(siteKey, table, row);
        return { table, id, body };
      });
      yield { table: "body", rows };
    }
  }
  const quarantine = pages(
    "SELECT * FROM quarantine WHERE site = $1 AND seq > $2 ORDER BY seq",
    [0],
    (row) => [row["seq"]],
  );
  for await (const page of quarantine)
    yield { table: "quarantine", rows: page.map((row) => JSON.parse(String(row["body"]))) };
  const readings = pages(
    `SELECT * FROM reading WHERE site = $1 AND (minute, charger, at, delay) > ($2, $3, $4, $5)
     ORDER BY minute, charger, at, delay`,
    [Number.MIN_SAFE_INTEGER, "", 0, 0],
    (row) => [row["minute"], row["charger"], row["at"], row["delay"]],
  );
  for await (const page of readings) yield { table: "reading", rows: page.map(rowIn) };
  const seats = pages(
    "SELECT * FROM seat WHERE site = $1 AND (vehicle, day, charger) > ($2, $3, $4) ORDER BY vehicle, day, charger",
    ["", 0, ""],
    (row) => [row["vehicle"], row["day"], row["charger"]],
  );
  for await (const page of seats)
    yield {
      table: "seat",
      rows: page.map((row) => [Number(row["day"]), String(row["vehicle"]), String(row["charger"])] as const),
    };
}

/** The stored text begins with the cells. The rest are the facts, byte by byte as they were hashed. */
function chainRow(row: Row) {
  const text = String(row["body"]);
  const [seq, at, kind, charger, vehicle, event, command, words] = JSON.parse(text);
  const cells: Cells = [seq, at, kind, charger, vehicle, event, command, words];
  const facts = text.slice(JSON.stringify(cells).length, -1);
  if (rowText(cells, facts) !== text) throw new NotMoved(`row ${seq} is not written as setpointd writes it`);
  return { cells, facts, hash: String(row["hash"]) };
}

async function refuseKnown({ query }: Pick<Database, "query">, { site, schema }: OpenPostgresOptions) {
  const [known] = await query("SELECT 1 FROM site WHERE id = $1", [site]);
  if (known !== undefined)
    throw new NotMoved(
      `the site ${site} has a state in the schema ${schema} of this database already: name another schema`,
    );
}

/** Throws `NotMoved` where the database has a state of the site: before the long work on the source. */
export const refuseKnownSite = (options: OpenPostgresOptions): Promise<void> =>
  withDatabase(options, (database) => refuseKnown(database, options));

/**
 * Stores a state under a site that the database does not know: in one transaction, which is verified before its end.
 * Throws `NotMoved`, and errors of the file system.
 */
export const storeInDatabase = (options: MovedDatabase, state: MovedState): Promise<Moved> =>
  withDatabase(options, (database) =>
    database.transaction(async (query) => {
      const { site, directory, keys: handed, siteKeys, random, progress } = options;
      const { keys, head, epoch } = state;
      await refuseKnown({ query }, options);
      const unusable = prepareDirectory(directory);
      if (unusable !== null) throw new NotMoved(unusable.reason);
      const wrongKey = siteKeys === null ? keysFault(directory, handed, keys) : null;
      if (wrongKey !== null) throw new NotMoved(wrongKey);
      const [newest = Buffer.alloc(0)] = siteKeys?.() ?? [];
      await query(
        `INSERT INTO site (id, key_print, proof_print, head_seq, head_hash, sealed, epoch, commit_no, evaluated_at, alive_at,
           readings, thinned_minute, keys) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, 0, $10, $11)`,
        [
          site,
          ...printsOf(keys),
          head.seq,
          head.hash,
          sealed(keys.siteKey, head, epoch),
          epoch,
          state.evaluatedAt,
          state.aliveAt,
          state.thinnedMinute,
          siteKeys === null ? null : encryptedKeys(newest, site, keys, random),
        ],
      );
      const count = new MovedCount();
      for await (const rows of state.rows()) {
        const [sql, values] = insertOf(site, keys.siteKey, rows);
        await query(sql, values);
        count.add(rows);
        progress.copied(count, state);
      }
      await query("UPDATE site SET readings = $2 WHERE id = $1", [site, count.readings]);
      // The server counts new rows a minute later. Until then it reads the whole table for each page.
      await query("ANALYZE audit, acknowledged, body, quarantine, reading, seat");
      const copy = { site, siteKey: keys.siteKey };
      const verified = await verifyWhole({ query }, copy, progress, VERIFYING_COPY);
      if (!verified.ok) throw new NotMoved(`the copy is not whole: ${verified.reason}`);
      await state.check();
      if (siteKeys === null) placeKeys(directory, handed, keys);
      return count;
    }),
  );
