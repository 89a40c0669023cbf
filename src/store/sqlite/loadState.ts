import type { DatabaseSync } from "node:sqlite";

import type { EditedEvent, StoredState, Scope, StoredScope } from "../../domain/changes.ts";
import {
  type Answers,
  type Command,
  commandId,
  type CommandRecord,
  mayBeAnswered,
  withAnswers,
} from "../../domain/command.ts";
import type { KnownEvent } from "../../domain/event.ts";
import { type Hold, type ObservePeriod, storedHold } from "../../domain/hold.ts";
import { type Reason, reasonIn } from "../../domain/reason.ts";
import type { ReportObligation, ReportRecord } from "../../domain/report.ts";
import { earlier, type Instant, instant } from "../../domain/units.ts";
import type { Binding } from "../../domain/vehicle.ts";
import { eventIn } from "../bodies.ts";
import { auditRow } from "../chain.ts";
import type { Fault } from "../fault.ts";
import { newestAcknowledgements, chainRow } from "./auditRows.ts";
import { type Trust, readBodies, readSome, type Source, trackedEvents } from "./bodies.ts";
import { type Connection, metaValue, prepared } from "./connection.ts";

/** Reads the state of the last run. If one body was changed, no part of this state is used. */
export function loadState(connection: Connection, trust: Trust, now: Instant): StoredState | Fault {
  const { database } = connection;
  const commands: CommandRecord[] = [];
  const holds: Hold[] = [];
  const bindings: Binding[] = [];
  const periods: ObservePeriod[] = [];
  const edited: EditedEvent[] = [];
  const from: Source = { database, trust, onEdited: (event) => edited.push(event) };
  const broken =
    readBodies(from, "command", (body) => commands.push(JSON.parse(body))) ??
    readBodies(from, "hold", (body) => holds.push(storedHold(JSON.parse(body)))) ??
    readBodies(from, "binding", (body) => bindings.push(JSON.parse(body))) ??
    readBodies(from, "observe_period", (body) => periods.push(JSON.parse(body)));
  if (broken !== null) return broken;
  const owed = loadOwed(database, trust);
  if ("kind" in owed) return owed;
  const newest = database.prepare("SELECT at FROM audit ORDER BY seq DESC LIMIT 1").get();
  const evaluated = database.prepare("SELECT value FROM meta WHERE name = 'looked'").get();
  const moments = [newest?.["at"], evaluated?.["value"]].filter((moment) => moment !== undefined).map(Number);
  const storedAt = moments.length === 0 ? null : instant(Math.max(...moments));
  // States of earlier versions may lack it.
  const evaluatedAt = evaluated === undefined ? storedAt : instant(Number(evaluated["value"]));
  const alive = database.prepare("SELECT value FROM meta WHERE name = 'alive'").get();
  const aliveAt = alive === undefined ? storedAt : instant(Math.max(Number(alive["value"]), storedAt ?? 0));
  // Events that ended after the last evaluation are read whole: their end is not recorded yet.
  const events = trackedEvents(connection, from, earlier(evaluatedAt ?? now, now));
  if ("kind" in events) return events;
  const recordedAt = newest === undefined ? null : instant(Number(newest["at"]));
  return {
    events,
    edited,
    commands: answered(database, commands),
    reasons: reasons(database, commands),
    holds,
    bindings,
    observePeriod: periods[0] ?? null,
    ...owed,
    evaluatedAt,
    recordedAt,
    aliveAt,
  };
}

/** Reads what is stored of some events and chargers. Throws SQLite errors. */
export function loadScope(database: DatabaseSync, trust: Trust, scope: Scope): StoredScope | Fault {
  const events: KnownEvent[] = [];
  const commands: CommandRecord[] = [];
  const holds: Hold[] = [];
  const bindings: Binding[] = [];
  const periods: ObservePeriod[] = [];
  const from: Source = { database, trust, onEdited: null };
  const broken =
    readSome(from, "event", scope.events, (body) => events.push(eventIn(body))) ??
    readSome(from, "command", scope.chargers, (body) => commands.push(JSON.parse(body))) ??
    readSome(from, "hold", scope.holds, (body) => holds.push(storedHold(JSON.parse(body)))) ??
    readSome(from, "binding", scope.chargers, (body) => bindings.push(JSON.parse(body))) ??
    readBodies(from, "observe_period", (body) => periods.push(JSON.parse(body)));
  if (broken !== null) return broken;
  return {
    events,
    commands: answered(database, commands),
    reasons: reasons(database, commands),
    holds,
    bindings,
    observePeriod: periods[0] ?? null,
  };
}

/** Reads report obligations and open reports. Throws SQLite errors. */
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

function answered(database: DatabaseSync, commands: readonly CommandRecord[]): readonly CommandRecord[] {
  const answers = answersOf(database);
  return commands.map((record) =>
    // The record is searched only for a command whose row does not show its outcome.
    mayBeAnswered(record) ? withAnswers(record, answers(record.command)) : record,
  );
}

/** Answers of the broker and the charger, from the record: the stored command is not rewritten for them. */
function answersOf(database: DatabaseSync): (command: Command) => Answers {
  const rows = prepared(
    database,
    `SELECT at, kind, CASE WHEN kind = 'outcome' AND json_valid(facts) THEN facts ->> 'progress' END AS progress
     FROM audit WHERE charger = ? AND command = ? ORDER BY seq DESC`,
  );
  const shared = newestAcknowledgements(database);
  return (command) => {
    // Only the last command has progress.
    const newest = shared(command.charger);
    let acknowledgedAt = newest?.command === commandId(command) ? newest.at : null;
    let isAccepted = false;
    for (const { at, kind, progress } of rows.iterate(command.charger, commandId(command))) {
      if (kind === "decision") break;
      if (progress === "acknowledged") acknowledgedAt ??= instant(Number(at));
      if (progress === "accepted") isAccepted = true;
    }
    return { acknowledgedAt, isAccepted };
  };
}

/** The reason of each command, from the row of its decision, so that views show the same reason after a restart. */
function reasons(database: DatabaseSync, records: readonly CommandRecord[]): ReadonlyMap<string, Reason> {
  const rows = prepared(
    database,
    `SELECT * FROM audit
     WHERE charger = ? AND command = ? AND kind = 'decision' AND json_valid(facts) ORDER BY seq DESC LIMIT 1`,
  );
  const found = new Map<string, Reason>();
  for (const record of records) {
    for (const { command } of [record, ...(record.standing === undefined ? [] : [record.standing])]) {
      const id = commandId(command);
      const row = rows.get(command.charger, id);
      const reason = row === undefined ? null : reasonIn(auditRow(chainRow(row)).facts);
      if (reason !== null) found.set(id, reason);
    }
  }
  return found;
}

/** A state restored from a backup: commands sent after the backup are not on record. */
export interface RestoredFromBackup {
  /** Epoch of the first run on it. An epoch is independent of the clock. */
  readonly epoch: number;
  /** The restore is on record. */
  readonly isRecorded: boolean;
}

const RECORDED = " told";

/** Null: not a backup. */
export function restoredIn(connection: Connection): RestoredFromBackup | null {
  const value = metaValue(connection, "restored");
  return value === null ? null : { epoch: Number.parseInt(value, 10), isRecorded: value.endsWith(RECORDED) };
}

/** Marks the state as restored from a backup. `epoch`: of the first run after it. `isTold`: the record has it. */
export function markRestored(connection: Connection, epoch: number, isTold: boolean): void {
  connection.putMeta.run("restored", `${epoch}${isTold ? RECORDED : ""}`);
}

/** Leaves out releases from before the restore: their chargers may have been limited since. */
export const knownSince = (
  commands: readonly CommandRecord[],
  restored: RestoredFromBackup | null,
): readonly CommandRecord[] =>
  restored === null
    ? commands
    : commands.filter(({ command }) => command.desired.kind !== "release" || command.epoch >= restored.epoch);
