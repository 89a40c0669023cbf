import { DatabaseSync } from "node:sqlite";

import type { OnOlder } from "../../domain/store.ts";
import { damaged, otherVersion, refused, type Fault } from "../fault.ts";
import { faultOf } from "./fault.ts";

/**
 * Forward only; a released migration never changes. `user_version` counts the migrations that ran. `sum` is
 * the CRC-32 of table, key and body: SQLite itself detects about one flipped bit in twenty.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE event (id TEXT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;
  CREATE TABLE command (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE hold (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE quarantine (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, source TEXT NOT NULL,
    event TEXT, path TEXT NOT NULL, reason TEXT NOT NULL, raw TEXT NOT NULL
  ) STRICT;
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL,
    charger TEXT, vehicle TEXT, event TEXT, command TEXT,
    words TEXT NOT NULL, facts TEXT NOT NULL, hash TEXT NOT NULL
  ) STRICT;
  CREATE INDEX audit_event ON audit (event) WHERE event IS NOT NULL;
  CREATE INDEX audit_charger ON audit (charger) WHERE charger IS NOT NULL;
  `,
  `CREATE TABLE prices (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT`,
  // Readings are ordered by minute: a commit touches few pages, and the oldest are deleted together.
  `
  CREATE TABLE reading (
    minute INTEGER NOT NULL, charger TEXT NOT NULL, at INTEGER NOT NULL, delay INTEGER NOT NULL,
    vehicle TEXT, marks INTEGER NOT NULL,
    power REAL, energy REAL, current REAL, voltage REAL, soc REAL, level REAL, state TEXT, told TEXT,
    PRIMARY KEY (minute, charger, at, delay)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE seat (
    day INTEGER NOT NULL, vehicle TEXT NOT NULL, charger TEXT NOT NULL, PRIMARY KEY (vehicle, day, charger)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE duty (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE report (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, event TEXT NOT NULL, open INTEGER NOT NULL,
    body TEXT NOT NULL, sum INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX report_event ON report (event);
  CREATE INDEX report_open ON report (seq) WHERE open = 1;
  CREATE TABLE report_body (
    id TEXT PRIMARY KEY, size INTEGER NOT NULL, body TEXT NOT NULL, sum INTEGER NOT NULL
  ) STRICT;
  `,
  // An outage may have begun long before the event that it affected.
  "CREATE INDEX audit_silence ON audit (seq) WHERE kind = 'silence'",
  // HMACs with the site key. Null: written earlier; bodies are signed at the first open, readings step by
  // step.
  `
  ALTER TABLE event ADD COLUMN mac TEXT;
  ALTER TABLE hold ADD COLUMN mac TEXT;
  ALTER TABLE duty ADD COLUMN mac TEXT;
  ALTER TABLE report ADD COLUMN mac TEXT;
  ALTER TABLE report_body ADD COLUMN mac TEXT;
  ALTER TABLE reading ADD COLUMN mac BLOB;
  `,
  // Summary of an ended event, so that a start need not read the event itself.
  `CREATE TABLE event_summary (
    id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL, mac TEXT
  ) WITHOUT ROWID, STRICT`,
  // Edited events are stored with shared lists (bodies.ts). Older programs cannot read them.
  "SELECT 1",
  // Rows of the record that name several commands, by charger. The chain covers the rows.
  `CREATE TABLE acknowledged (
    charger TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (charger, seq)
  ) WITHOUT ROWID, STRICT`,
  // Holds have ids, scopes and ends of several kinds (domain/hold.ts). Older programs cannot read them.
  "SELECT 1",
  "CREATE TABLE alarm (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT",
  `CREATE TABLE observe_period (
    id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL, mac TEXT
  ) WITHOUT ROWID, STRICT`,
  // Hash of a row as 32 bytes; `hash` is then empty. Null: an earlier version wrote 64 characters into `hash`.
  "ALTER TABLE audit ADD COLUMN digest BLOB",
  `
  CREATE TABLE departure (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  CREATE TABLE plug_in (id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  `,
  // Earlier versions wrote the mark of the last evaluation at the start or end of a window only, and let the newest row
  // stand for one. That holds after an orderly stop. Otherwise the windows since the mark may be on record as missed.
  `
  INSERT INTO meta SELECT 'looked', CAST(at AS TEXT) FROM audit
    WHERE seq = (SELECT max(seq) FROM audit) AND kind = 'daemon' AND words = 'setpointd stopped'
    ON CONFLICT DO UPDATE SET value = excluded.value
    WHERE CAST(excluded.value AS INTEGER) > CAST(meta.value AS INTEGER)
  `,
  // Decisions and outcomes are nearly all of a record. A question for another kind reads none of them.
  "CREATE INDEX audit_rare ON audit (kind, seq) WHERE kind NOT IN ('decision', 'outcome')",
  `CREATE TABLE binding (
    id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL, mac TEXT
  ) WITHOUT ROWID, STRICT`,
];

/**
 * Migrates the schema to this program's version, each step in one transaction. Null: done. `older`: what becomes of the
 * state of an earlier version.
 */
export function migrate(
  database: DatabaseSync,
  steps: readonly string[] = MIGRATIONS,
  older: OnOlder = "upgrade",
): Fault | null {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  // Stored twice: one flipped bit must not look like another program's schema.
  if (version !== recorded(database)) return damaged("the schema version does not match the tables");
  const isOlder = version > 0 && version < steps.length;
  if (version > steps.length || (isOlder && older === "refuse"))
    return refused(otherVersion(version, steps.length));
  const foreign = version === 0 ? null : foreignObject(database, steps.slice(0, version));
  if (foreign !== null) return damaged(foreign);
  for (const [index, step] of steps.entries()) {
    if (index < version) continue;
    const reached = index + 1;
    try {
      database.exec(`BEGIN IMMEDIATE; ${step};
        INSERT INTO meta VALUES ('schema', '${reached}') ON CONFLICT DO UPDATE SET value = excluded.value;
        PRAGMA user_version = ${reached}; COMMIT`);
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      // Not reported as damage: a mistake in a migration would then discard the state of every depot that
      // upgrades.
      return { ...faultOf(error), kind: "refused" };
    }
  }
  return null;
}

/**
 * Finds an object that these steps did not create: a trigger or a view would run with our statements.
 * Compared before the first write. Statistics tables of `ANALYZE` are allowed. Null: none.
 */
function foreignObject(database: DatabaseSync, steps: readonly string[]): string | null {
  const expected = objectsOf(steps);
  const found = objectsIn(database);
  for (const [name, sql] of found) {
    const known = expected.get(name);
    if (known === undefined) return `the database has a ${name} that setpointd did not make`;
    if (known !== sql) return `the ${name} of the database was changed: it is not as setpointd made it`;
  }
  const missing = [...expected.keys()].find((name) => !found.has(name));
  return missing === undefined ? null : `the ${missing} of the database is missing`;
}

/** The objects of each released version, by its steps: after each failed commit the database is opened again. */
const objectsOfVersion = new Map<string, ReadonlyMap<string, string>>();

/** Schema that these steps create. */
function objectsOf(steps: readonly string[]): ReadonlyMap<string, string> {
  const key = steps.join(";");
  const known = objectsOfVersion.get(key);
  if (known !== undefined) return known;
  using model = new DatabaseSync(":memory:");
  for (const step of steps) model.exec(step);
  const objects = objectsIn(model);
  objectsOfVersion.set(key, objects);
  return objects;
}

/** SQL statements by kind and name, such as `table audit`. */
function objectsIn(database: DatabaseSync): ReadonlyMap<string, string> {
  const rows = database.prepare(
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat[1-4]'",
  );
  // Another version of SQLite may format white space differently.
  return new Map(
    rows
      .all()
      .map(({ type, name, sql }) => [`${String(type)} ${String(name)}`, String(sql).replaceAll(/\s+/g, " ")]),
  );
}

function recorded(database: DatabaseSync): number {
  const tables = database.prepare("SELECT count(*) AS n FROM sqlite_schema").get();
  if (tables?.["n"] === 0) return 0;
  return Number(database.prepare("SELECT value FROM meta WHERE name = 'schema'").get()?.["value"]);
}
