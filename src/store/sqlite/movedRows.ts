import type { SQLOutputValue } from "node:sqlite";

import { BODY_TABLES, type BodyTable } from "../bodies.ts";
import { inSteps, type MovedBody, type MovedRows, NotMoved } from "../movedState.ts";
import { chainRow, quarantinedIn } from "./auditRows.ts";
import { storedBody } from "./bodies.ts";
import type { Connection } from "./connection.ts";
import { knownSince, restoredIn } from "./loadState.ts";
import { rowOf } from "./readings.ts";

/** All rows of a state, table by table. Throws `NotMoved` and SQLite errors. */
export async function* rowsIn(connection: Connection): AsyncGenerator<MovedRows> {
  const { database } = connection;
  const all = (table: string, order: string): Iterable<Record<string, SQLOutputValue>> =>
    database.prepare(`SELECT * FROM ${table} ORDER BY ${order}`).iterate();
  for (const rows of inSteps(all("audit", "seq"))) yield { table: "audit", rows: rows.map(chainRow) };
  for (const rows of inSteps(all("acknowledged", "charger, seq")))
    yield {
      table: "acknowledged",
      rows: rows.map((row) => [String(row["charger"]), Number(row["seq"])] as const),
    };
  for (const table of BODY_TABLES)
    for (const rows of inSteps(all(table, ORDER[table] ?? "id"))) {
      const bodies = rows.map((row) => bodyOf(table, row));
      yield {
        table: "body",
        rows: table === "command" ? bodies.filter((body) => isKnown(connection, body)) : bodies,
      };
    }
  for (const rows of inSteps(all("quarantine", "seq")))
    yield { table: "quarantine", rows: rows.map(quarantinedIn) };
  for (const rows of inSteps(all("reading", "minute, charger, at, delay")))
    yield { table: "reading", rows: rows.map(rowOf) };
  for (const rows of inSteps(all("seat", "vehicle, day, charger")))
    yield {
      table: "seat",
      rows: rows.map((row) => [Number(row["day"]), String(row["vehicle"]), String(row["charger"])] as const),
    };
}

/** Tables whose order counts: events arrive, and reports are made, one after another. */
const ORDER: Partial<Record<BodyTable, string>> = {
  event: "rowid",
  event_summary: "(SELECT rowid FROM event WHERE event.id = event_summary.id)",
  report: "seq",
  report_body: "rowid",
};

function bodyOf(table: BodyTable, row: Record<string, SQLOutputValue>): MovedBody {
  const { id, body, isWhole } = storedBody(table, row);
  if (!isWhole) throw new NotMoved(`the stored ${table} ${id} was changed`);
  return { table, id, body };
}

/** False: a release from before the restore of a backup. Its charger may have been limited since. */
const isKnown = (connection: Connection, { body }: MovedBody): boolean =>
  knownSince([JSON.parse(body)], restoredIn(connection)).length > 0;
