import { DatabaseSync } from "node:sqlite";
import { damaged, faultOf, refused, type Fault } from "./fault.ts";

/**
 * Forward only; a released one never changes. `user_version` counts those that ran. `sum` is the CRC-32 of table,
 * key and body: SQLite itself finds about one flipped bit in twenty (F03).
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
  // Readings lie by the minute: a commit touches few pages (finding 15), and the oldest go together.
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
  // An outage may have begun long before the event that it befell.
  "CREATE INDEX audit_silence ON audit (seq) WHERE kind = 'silence'",
  // HMACs with the site key. Null: from before this, signed at the first open (bodies), or by and by (readings).
  `
  ALTER TABLE event ADD COLUMN mac TEXT;
  ALTER TABLE hold ADD COLUMN mac TEXT;
  ALTER TABLE duty ADD COLUMN mac TEXT;
  ALTER TABLE report ADD COLUMN mac TEXT;
  ALTER TABLE report_body ADD COLUMN mac TEXT;
  ALTER TABLE reading ADD COLUMN mac BLOB;
  `,
  // What memory keeps of an event that is over: at a start the event itself is not read then.
  `CREATE TABLE event_summary (
    id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL, mac TEXT
  ) WITHOUT ROWID, STRICT`,
  // Events that were edited are stored with shared lists (eventBody.ts). Older programs cannot read them.
  "SELECT 1",
];

/** Brings the schema up to this program's, each step in one transaction (F13). Null: done. */
export function migrate(database: DatabaseSync, steps: readonly string[] = MIGRATIONS): Fault | null {
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  // Kept twice: one flipped bit must not look like another program's schema.
  if (version !== recorded(database)) return damaged("the schema version does not match the tables");
  if (version > steps.length) {
    return refused(
      `this state was written by a newer setpointd (schema ${version}; this one knows up to ${steps.length}): start the newer one`,
    );
  }
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
      // Not damage, or a mistake in a step would throw away the state of every depot that upgrades.
      return { ...faultOf(error), kind: "refused" };
    }
  }
  return null;
}

/**
 * A trigger or a view would run with our statements, and a changed table keeps other things than we wrote. Compared
 * before the first write. `ANALYZE` leaves tables of statistics, which change no answer. Null: as these steps made it.
 */
function foreignObject(database: DatabaseSync, steps: readonly string[]): string | null {
  using model = new DatabaseSync(":memory:");
  for (const step of steps) model.exec(step);
  const expected = objectsIn(model);
  const found = objectsIn(database);
  for (const [name, sql] of found) {
    const known = expected.get(name);
    if (known === undefined) return `the database has a ${name} that setpointd did not make`;
    if (known !== sql) return `the ${name} of the database was changed: it is not as setpointd made it`;
  }
  const missing = [...expected.keys()].find((name) => !found.has(name));
  return missing === undefined ? null : `the ${missing} of the database is missing`;
}

/** Their statements by kind and name, such as `table audit`. */
function objectsIn(database: DatabaseSync): ReadonlyMap<string, string> {
  const rows = database.prepare(
    "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_stat[1-4]'",
  );
  // SQLite may set blanks otherwise in another version.
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
