import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import type { EditedEvent } from "../core/ledger.ts";
import { eventId } from "../core/units.ts";
import { columnsOf, isOurs, storedBody, type Trust } from "./bodies.ts";
import { damaged, type Fault } from "./fault.ts";
import type { BodyTable } from "./rows.ts";

/** Where bodies are read from, and what they are checked with. */
export interface Source {
  readonly database: DatabaseSync;
  readonly trust: Trust;
  /** Null: an event that was edited is damage like any other. */
  readonly onEdited: ((event: EditedEvent) => void) | null;
}

/** Reads all bodies of a table. Null: each is ours. Throws SQLite errors. */
export function readBodies(
  from: Source,
  table: BodyTable,
  take: (body: string) => void,
  which = "",
): Fault | null {
  for (const row of from.database.prepare(`SELECT ${columnsOf(table)} FROM ${table} ${which}`).iterate()) {
    const broken = readBody(from, table, row, take);
    if (broken !== null) return broken;
  }
  return null;
}

/** Reads the bodies of these ids, as far as they are there. */
export function readSome(
  from: Source,
  table: BodyTable,
  ids: Iterable<string>,
  take: (body: string) => void,
): Fault | null {
  const stored = from.database.prepare(`SELECT ${columnsOf(table)} FROM ${table} WHERE id = ?`);
  for (const id of ids) {
    const row = stored.get(id);
    const broken = row === undefined ? null : readBody(from, table, row, take);
    if (broken !== null) return broken;
  }
  return null;
}

/** A flipped bit breaks the sum, and the whole state is doubted; a sum that fits and an HMAC that does not were edited. */
export function readBody(
  { trust, onEdited }: Source,
  table: BodyTable,
  row: Record<string, SQLOutputValue>,
  take: (body: string) => void,
): Fault | null {
  const stored = storedBody(table, row);
  const { id, body } = stored;
  if (!stored.isWhole) return damaged(`the stored ${table} ${id} was changed`);
  if (isOurs(trust, table, stored)) take(body);
  else if (table === "event" && onEdited !== null) onEdited({ id: eventId(id), raw: body });
  else return damaged(`the stored ${table} ${id} was edited by another program`);
  return null;
}
