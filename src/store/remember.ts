import type { DatabaseSync } from "node:sqlite";
import { type Command, commandId, type CommandRecord } from "../core/control/command.ts";
import type { Hold } from "../core/control/hold.ts";
import type { KnownEvent } from "../core/control/known.ts";
import type { Remembered } from "../core/ledger.ts";
import { type Reason, reasonIn } from "../core/reason.ts";
import type { ReportDuty, ReportRecord } from "../core/reporting/outbox.ts";
import { type Instant, instant } from "../core/units.ts";
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
  const arrival = arrivals(database);
  const newest = database.prepare("SELECT at FROM audit ORDER BY seq DESC LIMIT 1").get();
  const looked = database.prepare("SELECT value FROM meta WHERE name = 'looked'").get();
  const moments = [newest?.["at"], looked?.["value"]].filter((moment) => moment !== undefined).map(Number);
  const lookedAt = moments.length === 0 ? null : instant(Math.max(...moments));
  const alive = database.prepare("SELECT value FROM meta WHERE name = 'alive'").get();
  const aliveAt = alive === undefined ? lookedAt : instant(Math.max(Number(alive["value"]), lookedAt ?? 0));
  const recordedAt = newest === undefined ? null : instant(Number(newest["at"]));
  const told = commands.map((record) =>
    record.progress === "planned" ? withArrival(record, arrival(record.command)) : record,
  );
  return {
    events,
    commands: told,
    reasons: reasons(database, commands),
    holds,
    duties,
    outbox,
    lookedAt,
    recordedAt,
    aliveAt,
  };
}

/** When the broker took a command, as the record has it: the command itself is not written again for that. Null: it did not. */
function arrivals(database: DatabaseSync): (command: Command) => Instant | null {
  const rows = database.prepare(
    `SELECT at, kind, CASE WHEN kind = 'outcome' AND json_valid(facts) THEN facts ->> 'progress' END AS progress
     FROM audit WHERE charger = ? AND command = ? ORDER BY seq DESC`,
  );
  return (command) => {
    for (const { at, kind, progress } of rows.iterate(command.charger, commandId(command))) {
      if (progress === "acknowledged") return instant(Number(at));
      if (kind === "decision") return null;
    }
    return null;
  };
}

/** Why each command was decided, as the row of its decision has it: people are told the same as before the restart. */
function reasons(database: DatabaseSync, records: readonly CommandRecord[]): ReadonlyMap<string, Reason> {
  const rows = database.prepare(
    `SELECT CASE WHEN json_valid(facts) THEN facts END AS facts
     FROM audit WHERE charger = ? AND command = ? AND kind = 'decision' ORDER BY seq DESC LIMIT 1`,
  );
  const found = new Map<string, Reason>();
  for (const record of records) {
    for (const { command } of [record, ...(record.standing === undefined ? [] : [record.standing])]) {
      const id = commandId(command);
      const facts = rows.get(command.charger, id)?.["facts"];
      const reason = typeof facts === "string" ? reasonIn(JSON.parse(facts)) : null;
      if (reason !== null) found.set(id, reason);
    }
  }
  return found;
}

const withArrival = (record: CommandRecord, at: Instant | null): CommandRecord =>
  at === null ? record : { ...record, progress: "acknowledged", sentAt: at, sends: 1 };

/** As it was stored; earlier versions counted no descriptors, and kept no anchor of what was withdrawn. */
function eventIn(body: string): KnownEvent {
  const known: KnownEvent = JSON.parse(body);
  return known.kind === "live"
    ? { ...known, descriptors: known.descriptors ?? known.revision.event.reports.length }
    : { ...known, descriptors: known.descriptors ?? 0, anchor: known.anchor ?? null };
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
