import type { DatabaseSync, StatementSync } from "node:sqlite";

/** The open database with the statements that a commit runs, prepared once. */
export interface Connection {
  readonly database: DatabaseSync;
  readonly putEvent: StatementSync;
  readonly putCommand: StatementSync;
  readonly putHold: StatementSync;
  readonly endHold: StatementSync;
  readonly putAudit: StatementSync;
  readonly putQuarantine: StatementSync;
  readonly trimQuarantine: StatementSync;
  readonly putMeta: StatementSync;
  readonly getMeta: StatementSync;
}

export function connection(database: DatabaseSync): Connection {
  const put = (table: string): StatementSync =>
    database.prepare(
      `INSERT INTO ${table} (id, body, sum) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET body = excluded.body, sum = excluded.sum`,
    );
  return {
    database,
    putEvent: database.prepare(
      `INSERT INTO event (id, kind, body, sum) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, body = excluded.body, sum = excluded.sum`,
    ),
    putCommand: put("command"),
    putHold: put("hold"),
    endHold: database.prepare("DELETE FROM hold WHERE id = ?"),
    putAudit: database.prepare("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    putQuarantine: database.prepare("INSERT INTO quarantine VALUES (NULL, ?, ?, ?, ?, ?, ?)"),
    trimQuarantine: database.prepare(
      "DELETE FROM quarantine WHERE seq <= (SELECT max(seq) FROM quarantine) - ?",
    ),
    putMeta: database.prepare(
      "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ),
    getMeta: database.prepare("SELECT value FROM meta WHERE name = ?"),
  };
}

/** Null: not there. */
export function metaValue(connection: Connection, name: "head" | "siteKey"): string | null {
  const row = connection.getMeta.get(name);
  return row === undefined ? null : String(row["value"]);
}
