import type { AuditRow } from "../../domain/audit.ts";
import type { Change } from "../../domain/changes.ts";
import { departureKey } from "../../domain/departure.ts";
import { priceKey } from "../../domain/prices.ts";
import { obligationKey } from "../../domain/report.ts";
import type { BodyTable } from "../bodies.ts";
import { nextRows, numbered, type Head, sealed } from "../chain.ts";
import { sumOf } from "./auditRows.ts";
import { signed, putEvent } from "./bodies.ts";
import { type Connection, inTransaction } from "./connection.ts";
import { putReport } from "./reports.ts";

/** Rejected input is kept for inspection: the newest rows. */
const QUARANTINE_ROWS = 1000;

/** Rows that a commit added to the record, and the new head. */
export interface CommitBatch {
  readonly head: Head;
  /** The head as stored. Null: unchanged. */
  readonly sealed: string | null;
  readonly rows: readonly AuditRow[];
}

/** Key and epoch that the head is sealed with. */
export interface Writer {
  readonly siteKey: Buffer;
  readonly epoch: number;
}

/**
 * Commits all changes in order in one transaction: on return they survive a power cut. Throws SQLite errors,
 * with nothing applied.
 */
export function commitBatch(
  connection: Connection,
  { siteKey, epoch }: Writer,
  start: Head,
  changes: readonly Change[],
): CommitBatch {
  return inTransaction(connection.database, () => {
    for (const change of changes) apply(connection, siteKey, change);
    const { head, rows } = append(connection, start, changes);
    if (changes.some(({ kind }) => kind === "quarantine")) connection.trimQuarantine.run(QUARANTINE_ROWS);
    const kept = rows.length > 0 ? sealed(siteKey, head, epoch) : null;
    if (kept !== null) connection.putMeta.run("head", kept);
    return { head, sealed: kept, rows };
  });
}

/** Writes one change. */
function apply(connection: Connection, siteKey: Buffer, change: Change): void {
  switch (change.kind) {
    case "event":
      putEvent(connection, siteKey, change.known);
      break;
    case "eventForgotten":
      connection.forgetEvent.run(change.id);
      connection.forgetSummary.run(change.id);
      connection.forgetDuties.run(change.id);
      break;
    case "command": {
      const { charger } = change.record.command;
      connection.putCommand.run(charger, ...summed("command", charger, change.record));
      break;
    }
    case "commandForgotten":
      connection.forgetCommand.run(change.charger);
      break;
    case "hold": {
      const { id } = change.hold;
      connection.putHold.run(id, ...signed(siteKey, "hold", id, JSON.stringify(change.hold)));
      break;
    }
    case "holdForgotten":
      connection.forgetHold.run(change.id);
      break;
    case "binding": {
      const { charger } = change.binding;
      connection.putBinding.run(
        charger,
        ...signed(siteKey, "binding", charger, JSON.stringify(change.binding)),
      );
      break;
    }
    case "bindingForgotten":
      connection.forgetBinding.run(change.charger);
      break;
    case "observePeriod":
      if (change.period === null) connection.forgetObservePeriod.run();
      // The site has one mode, so the table has one row at most.
      else
        connection.putObservePeriod.run(
          "site",
          ...signed(siteKey, "observe_period", "site", JSON.stringify(change.period)),
        );
      break;
    case "alarm": {
      const { key } = change.alarm;
      connection.putAlarm.run(key, ...summed("alarm", key, change.alarm));
      break;
    }
    case "alarmForgotten":
      connection.forgetAlarm.run(change.key);
      break;
    case "departure": {
      const key = departureKey(change.departure);
      connection.putDeparture.run(key, ...summed("departure", key, change.departure));
      break;
    }
    case "departureForgotten":
      connection.forgetDeparture.run(change.key);
      break;
    case "plugIn":
      connection.putPlugIn.run(change.charger, ...summed("plug_in", change.charger, change.plugIn));
      break;
    case "plugInForgotten":
      connection.forgetPlugIn.run(change.charger);
      break;
    case "prices": {
      const key = priceKey(change.series);
      connection.putPrices.run(key, ...summed("prices", key, change.series));
      break;
    }
    case "duty": {
      const key = obligationKey(change.duty);
      connection.putDuty.run(key, ...signed(siteKey, "duty", key, JSON.stringify(change.duty)));
      break;
    }
    case "report":
      putReport(connection, siteKey, change.record, change.body);
      break;
    case "reportForgotten":
      connection.forgetReport.run(change.name);
      connection.forgetReportBody.run(change.name);
      break;
    case "deliveryTaken":
      // A folder has one process, and no stand-in.
      break;
    case "evaluated":
      connection.putMeta.run("looked", String(change.at));
      break;
    case "quarantine": {
      const { id, path, reason, raw } = change.rejected;
      connection.putQuarantine.run(change.at, change.source, id, path, reason, raw);
      break;
    }
    case "audit":
      // `append` writes the rows of the record.
      break;
    case "auditPruned":
      connection.pruneAcknowledged.run(change.through);
      connection.pruneAudit.run(change.through);
      break;
  }
}

/** A body without an HMAC, and its sum. */
function summed(table: BodyTable, id: string, value: object): readonly [body: string, sum: number] {
  const body = JSON.stringify(value);
  return [body, sumOf(table, id, body)];
}

/** Writes the rows of the record. */
function append(
  connection: Connection,
  start: Head,
  changes: readonly Change[],
): { readonly head: Head; readonly rows: readonly AuditRow[] } {
  const rows: AuditRow[] = [];
  let head = start;
  const added = changes.flatMap((change) => (change.kind === "audit" ? [change.entry] : []));
  for (const { cells, facts, hash, entries, chargers } of nextRows(start, added)) {
    const [seq] = cells;
    head = { seq, hash };
    connection.putAudit.run(...cells, facts, hash);
    for (const charger of chargers) connection.putAcknowledged.run(charger, seq);
    for (const entry of entries) rows.push(numbered(entry, seq, hash));
  }
  return { head, rows };
}
