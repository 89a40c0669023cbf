import type { DatabaseSync } from "node:sqlite";

import type { EditedEvent, StoredState, Scope, StoredScope } from "../../domain/changes.ts";
import { type Hold, type Command, commandId, type CommandRecord } from "../../domain/command.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { type Reason, reasonIn } from "../../domain/reason.ts";
import type { ReportObligation, ReportRecord } from "../../domain/report.ts";
import { earlier, type Instant, instant } from "../../domain/units.ts";
import { type Trust, readBodies, readSome, type Source } from "./bodies.ts";
import { type Connection, metaValue } from "./connection.ts";
import type { Fault } from "./fault.ts";
import { eventIn, trackedEvents } from "./storedEvents.ts";

/** Reads back what the last run left. One body that is not what was written: nothing of this state is acted on (F03). */
export function loadState(connection: Connection, trust: Trust, now: Instant): StoredState | Fault {
  const { database } = connection;
  const commands: CommandRecord[] = [];
  const holds: Hold[] = [];
  const edited: EditedEvent[] = [];
  const from: Source = { database, trust, onEdited: (event) => edited.push(event) };
  const broken =
    readBodies(from, "command", (body) => commands.push(JSON.parse(body))) ??
    readBodies(from, "hold", (body) => holds.push(JSON.parse(body)));
  if (broken !== null) return broken;
  const owed = loadOwed(database, trust);
  if ("kind" in owed) return owed;
  const newest = database.prepare("SELECT at FROM audit ORDER BY seq DESC LIMIT 1").get();
  const looked = database.prepare("SELECT value FROM meta WHERE name = 'looked'").get();
  const moments = [newest?.["at"], looked?.["value"]].filter((moment) => moment !== undefined).map(Number);
  const lookedAt = moments.length === 0 ? null : instant(Math.max(...moments));
  const alive = database.prepare("SELECT value FROM meta WHERE name = 'alive'").get();
  const aliveAt = alive === undefined ? lookedAt : instant(Math.max(Number(alive["value"]), lookedAt ?? 0));
  // What ended since the last evaluation was missed: it is over once that is recorded.
  const events = trackedEvents(connection, from, earlier(lookedAt ?? now, now));
  if ("kind" in events) return events;
  const recordedAt = newest === undefined ? null : instant(Number(newest["at"]));
  return {
    events,
    edited,
    commands: withArrivals(database, commands),
    reasons: reasons(database, commands),
    holds,
    ...owed,
    evaluatedAt: lookedAt,
    recordedAt,
    aliveAt,
  };
}

/** Reads back what is stored of some events and chargers. Throws SQLite errors. */
export function loadScope(database: DatabaseSync, trust: Trust, scope: Scope): StoredScope | Fault {
  const events: KnownEvent[] = [];
  const commands: CommandRecord[] = [];
  const holds: Hold[] = [];
  const from: Source = { database, trust, onEdited: null };
  const broken =
    readSome(from, "event", scope.events, (body) => events.push(eventIn(body))) ??
    readSome(from, "command", scope.chargers, (body) => commands.push(JSON.parse(body))) ??
    readSome(from, "hold", scope.chargers, (body) => holds.push(JSON.parse(body)));
  if (broken !== null) return broken;
  return {
    events,
    commands: withArrivals(database, commands),
    reasons: reasons(database, commands),
    holds,
  };
}

/** Reads back what is owed to the partner. Throws SQLite errors. */
export function loadOwed(
  database: DatabaseSync,
  trust: Trust,
): Pick<StoredState, "duties" | "outbox"> | Fault {
  const duties: ReportObligation[] = [];
  const outbox: ReportRecord[] = [];
  const from: Source = { database, trust, onEdited: null };
  const broken =
    readBodies(from, "duty", (body) => duties.push(JSON.parse(body))) ??
    readBodies(from, "report", (body) => outbox.push(JSON.parse(body)), "WHERE open = 1 ORDER BY seq");
  return broken ?? { duties, outbox };
}

function withArrivals(database: DatabaseSync, commands: readonly CommandRecord[]): readonly CommandRecord[] {
  const arrival = arrivals(database);
  return commands.map((record) =>
    record.progress === "planned" ? withArrival(record, arrival(record.command)) : record,
  );
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

/** A state that was put back from a copy: what chargers were told between the copy and then is not on record. */
export interface RestoredFromBackup {
  /** Of the first run on it. An epoch, as no clock can be wrong about it. */
  readonly epoch: number;
  /** The record says so. */
  readonly isTold: boolean;
}

const TOLD = " told";

/** Null: it is no copy. */
export function restoredIn(connection: Connection): RestoredFromBackup | null {
  const value = metaValue(connection, "restored");
  return value === null ? null : { epoch: Number.parseInt(value, 10), isTold: value.endsWith(TOLD) };
}

export function markRestored(connection: Connection, epoch: number, isTold: boolean): void {
  connection.putMeta.run("restored", `${epoch}${isTold ? TOLD : ""}`);
}

/** Without the releases from before the copy was put back: their chargers may have been limited since. */
export const knownSince = (
  commands: readonly CommandRecord[],
  restored: RestoredFromBackup | null,
): readonly CommandRecord[] =>
  restored === null
    ? commands
    : commands.filter(({ command }) => command.desired.kind !== "release" || command.epoch >= restored.epoch);
