import type { DatabaseSync } from "node:sqlite";
import type { CommandRecord } from "../core/control/command.ts";
import type { Hold } from "../core/control/hold.ts";
import type { KnownEvent } from "../core/control/known.ts";
import type { Remembered } from "../core/ledger.ts";
import type { ReportDuty, ReportRecord } from "../core/reporting/outbox.ts";
import { instant } from "../core/units.ts";
import { damaged, type Fault } from "./fault.ts";
import { sumOf, type BodyTable } from "./rows.ts";

/** Reads back what the last run left. One body that is not what was written: nothing of this state is acted on (F03). */
export function remember(database: DatabaseSync): Remembered | Fault {
  const events: KnownEvent[] = [];
  const commands: CommandRecord[] = [];
  const holds: Hold[] = [];
  const duties: ReportDuty[] = [];
  const outbox: ReportRecord[] = [];
  const broken =
    readBodies(database, "event", (body) => events.push(eventIn(body))) ??
    readBodies(database, "command", (body) => commands.push(JSON.parse(body))) ??
    readBodies(database, "hold", (body) => holds.push(JSON.parse(body))) ??
    readBodies(database, "duty", (body) => duties.push(JSON.parse(body))) ??
    readBodies(database, "report", (body) => outbox.push(JSON.parse(body)), "WHERE open = 1 ORDER BY seq");
  if (broken !== null) return broken;
  const newest = database.prepare("SELECT at FROM audit ORDER BY seq DESC LIMIT 1").get();
  const looked = database.prepare("SELECT value FROM meta WHERE name = 'looked'").get();
  const moments = [newest?.["at"], looked?.["value"]].filter((moment) => moment !== undefined).map(Number);
  const lookedAt = moments.length === 0 ? null : instant(Math.max(...moments));
  const alive = database.prepare("SELECT value FROM meta WHERE name = 'alive'").get();
  const aliveAt = alive === undefined ? lookedAt : instant(Math.max(Number(alive["value"]), lookedAt ?? 0));
  const recordedAt = newest === undefined ? null : instant(Number(newest["at"]));
  return { events, commands, holds, duties, outbox, lookedAt, recordedAt, aliveAt };
}

/** As it was stored; before descriptors were counted, those of the last revision were all that is known of. */
function eventIn(body: string): KnownEvent {
  const known: KnownEvent = JSON.parse(body);
  const asked = known.kind === "live" ? known.revision.event.reports.length : 0;
  return { ...known, descriptors: known.descriptors ?? asked };
}

function readBodies(
  database: DatabaseSync,
  table: BodyTable,
  take: (body: string) => void,
  which = "",
): Fault | null {
  for (const row of database.prepare(`SELECT id, body, sum FROM ${table} ${which}`).iterate()) {
    const id = String(row["id"]);
    const body = String(row["body"]);
    if (sumOf(table, id, body) !== row["sum"]) return damaged(`the stored ${table} ${id} was changed`);
    take(body);
  }
  return null;
}
