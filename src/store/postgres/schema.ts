import type { Logger } from "pino";

import type { OnOlder } from "../../domain/store.ts";
import { otherVersion } from "../fault.ts";
import type { Database } from "./database.ts";

/**
 * Forward only; a released migration never changes. `version` has the number of migrations that ran. Every table is
 * keyed by the site, so that one database can have many.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE site (
    id text PRIMARY KEY,
    key_print text NOT NULL, proof_print text NOT NULL,
    head_seq bigint NOT NULL, head_hash text NOT NULL, sealed text NOT NULL,
    epoch bigint NOT NULL, leader text, led_since timestamptz, lease_until timestamptz,
    commit_no bigint NOT NULL, evaluated_at bigint, alive_at bigint,
    readings bigint NOT NULL, thinned_minute bigint NOT NULL
  );
  CREATE TABLE body (
    site text, kind text, id text, ord bigint GENERATED ALWAYS AS IDENTITY, event text, open boolean NOT NULL,
    moment bigint, body text NOT NULL, mac text NOT NULL, PRIMARY KEY (site, kind, id)
  );
  CREATE INDEX body_event ON body (site, event) WHERE event IS NOT NULL;
  CREATE INDEX body_ord ON body (site, kind, ord);
  CREATE TABLE quarantine (
    site text, seq bigint GENERATED ALWAYS AS IDENTITY, body text NOT NULL, PRIMARY KEY (site, seq)
  );
  CREATE TABLE audit (
    site text, seq bigint, at bigint NOT NULL, kind text NOT NULL, charger text, event text, command text,
    body text NOT NULL, hash text NOT NULL, PRIMARY KEY (site, seq)
  );
  CREATE INDEX audit_event ON audit (site, event, seq) WHERE event IS NOT NULL;
  CREATE INDEX audit_charger ON audit (site, charger, seq) WHERE charger IS NOT NULL;
  CREATE INDEX audit_rare ON audit (site, kind, seq) WHERE kind IN ('silence', 'checkpoint');
  CREATE TABLE acknowledged (site text, charger text, seq bigint, PRIMARY KEY (site, charger, seq));
  CREATE TABLE reading (
    site text, minute bigint, charger text, at bigint, delay bigint, vehicle text, body text NOT NULL, mac bytea NOT NULL,
    PRIMARY KEY (site, minute, charger, at, delay)
  );
  CREATE TABLE seat (site text, day bigint, vehicle text, charger text, PRIMARY KEY (site, vehicle, day, charger));
  CREATE TABLE delivery (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, site text NOT NULL, body text NOT NULL, mac text NOT NULL
  );
  CREATE INDEX delivery_site ON delivery (site, id);
  `,
  // Null: the keys of the site are files on each machine.
  "ALTER TABLE site ADD COLUMN keys text",
  // Fleets: `file` is the site file as JSON. Empty: the site was removed.
  `
  CREATE SEQUENCE fleet_revision;
  CREATE TABLE fleet_site (
    id text PRIMARY KEY, revision bigint NOT NULL, file text NOT NULL, mac text NOT NULL, put_at timestamptz NOT NULL
  );
  CREATE INDEX fleet_site_revision ON fleet_site (revision);
  CREATE TABLE fleet_vehicle (vehicle text PRIMARY KEY, site text NOT NULL);
  CREATE INDEX fleet_vehicle_site ON fleet_vehicle (site);
  CREATE TABLE fleet_event (event text, site text, at timestamptz NOT NULL, PRIMARY KEY (event, site));
  CREATE TABLE fleet_process (process text PRIMARY KEY, most integer NOT NULL, seen timestamptz NOT NULL);
  CREATE TABLE fleet_poller (
    one integer PRIMARY KEY, process text, until timestamptz, wanted bigint NOT NULL, number bigint NOT NULL,
    answer text NOT NULL, body_number bigint NOT NULL, body text NOT NULL, mac text NOT NULL
  );
  INSERT INTO fleet_poller VALUES (1, NULL, NULL, 0, 0, '', 0, '', '');
  CREATE TABLE fleet_deleted (event text PRIMARY KEY, notice text NOT NULL, at timestamptz NOT NULL);
  CREATE INDEX site_leader ON site (leader);
  ALTER TABLE site SET (fillfactor = 50);
  `,
  // Epoch and page of the leader, for stand-ins. Another epoch than that of the site: the page of a leader before.
  "ALTER TABLE site ADD COLUMN page text",
  // Decisions and outcomes are nearly all of a record. A question for another kind reads none of them.
  `
  DROP INDEX audit_rare;
  CREATE INDEX audit_rare ON audit (site, kind, seq) WHERE kind NOT IN ('decision', 'outcome');
  `,
  // The state of each site of a fleet as its leader saw it last, the page of each process, and the sites that it can start now.
  `
  CREATE TABLE fleet_state (
    id text PRIMARY KEY, epoch bigint NOT NULL, at timestamptz NOT NULL,
    chargers integer NOT NULL, live integer NOT NULL, alarms integer NOT NULL, worst text
  );
  ALTER TABLE fleet_process ADD COLUMN page text, ADD COLUMN room integer NOT NULL DEFAULT 0;
  `,
  // Sites that have an event, for a delivery that names only the event.
  "CREATE INDEX body_event_id ON body (id) WHERE kind = 'event'",
  // Epoch of the first run on a restored database. Zero: none yet. Null: it was never restored.
  "ALTER TABLE site ADD COLUMN restored bigint",
];

/** Version of the schema that this program makes. */
export const KNOWN_VERSION = MIGRATIONS.length;

/** Key of the advisory lock under which one process at a time changes the schema. */
const LOCK = 7_314_065;

/** Timeout of one step, ms. An index on the rows of thousands of sites takes longer than any other statement may. */
const STEP_WITHIN_MS = 600_000;

/**
 * Brings the schema to this program's version. Null: done. A text: the reason why not. `older`: what becomes of that of an
 * earlier version. Throws errors of the database.
 */
export async function migrate(
  database: Database,
  schema: string,
  steps: readonly string[] = MIGRATIONS,
  older: OnOlder = "upgrade",
): Promise<string | null> {
  if (await database.isPooled()) return refusalOf(POOLED);
  const version = await versionOf(database);
  if (version === steps.length) return null;
  if (version !== null && (version > steps.length || older === "refuse"))
    return otherVersion(version, steps.length);
  const unfit = version === null ? await encodingFault(database) : null;
  if (unfit !== null) return refusalOf(unfit);
  return database.transaction(async (query) => {
    await query("SELECT pg_advisory_xact_lock($1)", [LOCK]);
    // IF NOT EXISTS needs the right to make one, also where another user has made it.
    const [found] = await query("SELECT to_regnamespace($1) IS NULL AS missing", [schema]);
    if (found?.["missing"] === true) await query(`CREATE SCHEMA "${schema}"`);
    await query("CREATE TABLE IF NOT EXISTS version (number integer NOT NULL)");
    const [row] = await query("SELECT number FROM version");
    const number = Number(row?.["number"] ?? 0);
    if (number > steps.length) return otherVersion(number, steps.length);
    for (const step of steps.slice(number)) await query(step);
    await query("DELETE FROM version");
    await query("INSERT INTO version VALUES ($1)", [steps.length]);
    return null;
  }, STEP_WITHIN_MS);
}

/** Version of the schema. Null: there is none. Throws errors of the database. */
export async function versionOf(database: Database): Promise<number | null> {
  const [found] = await database.query("SELECT to_regclass('version') AS version");
  if (found?.["version"] === null) return null;
  const [row] = await database.query("SELECT number FROM version");
  return row === undefined ? null : Number(row["number"]);
}

/** A property of the database that setpointd cannot rely on, and the remedy. */
export interface Unfit {
  readonly found: string;
  readonly expected: string;
}

const refusalOf = ({ found, expected }: Unfit): string =>
  `state.postgres.url: ${found}; expected ${expected}`;

export const POOLED: Unfit = {
  found: "a pooler lends its connections for a transaction, and mixes the schemas of its clients",
  expected: "a pooler that lends its connections for a session: pool_mode = session of PgBouncer",
};

/** Encodings that take every name. SQL_ASCII, which initdb chooses for the locale C, stores the bytes as they are. */
const WIDE: readonly unknown[] = ["UTF8", "SQL_ASCII"];

/** A name outside the encoding would let every commit that has it fail. Null: it has all characters. */
export async function encodingFault(database: Pick<Database, "query">): Promise<Unfit | null> {
  const [row] = await database.query("SELECT current_setting('server_encoding') AS encoding");
  const encoding = String(row?.["encoding"]);
  return WIDE.includes(encoding)
    ? null
    : {
        found: `the encoding of this database is ${encoding}, which cannot store every name`,
        expected: "a database of the encoding UTF8: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
      };
}

/** Oldest version of PostgreSQL that the documents name. */
const OLDEST = 15;

/** The version of a server that is older than the documents name. Null: it is not, or it is not that of PostgreSQL itself. */
export async function versionFault(database: Pick<Database, "query">): Promise<Unfit | null> {
  const [row] = await database.query("SELECT version() AS version");
  const [, version = "", major = ""] = /^PostgreSQL ((\d+)[.\d]*) /.exec(String(row?.["version"])) ?? [];
  return version === "" || Number(major) >= OLDEST
    ? null
    : {
        found: `the server is PostgreSQL ${version}, with which setpointd is not tested`,
        expected: `PostgreSQL ${OLDEST} or later`,
      };
}

/** Logs that the server is older than the documents name. What is stored there is used all the same. */
export async function warnOfVersion(database: Pick<Database, "query">, log: Logger): Promise<void> {
  const old = await versionFault(database);
  if (old !== null) log.warn(refusalOf(old));
}
