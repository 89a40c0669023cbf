import { auditRow, type Json } from "../domain/audit.ts";
import type { Change } from "../domain/changes.ts";
import { obligationKey, type ReportObligation, type ReportRecord } from "../domain/report.ts";
import type { EventId, Instant } from "../domain/units.ts";
import type { WallClock } from "../platform/clock.ts";
import { sanitizeForLog } from "../platform/text.ts";

/** Audit row about a report. A `warning` in `facts` raises its log line to a warning. */
const row = (at: Instant, event: EventId, message: string, facts: Json): Change =>
  auditRow("report", at, message, { event, facts });

/** Committed with the report, before it is sent. */
export function composedRow(record: ReportRecord, at: Instant, wallClock: WallClock): Change {
  const { name, event, payloadType, summary, span, flags } = record;
  const odd = flags.length === 0 ? "" : `; ${flags.join("; ")}`;
  const when = `${wallClock(span.from)} to ${wallClock(span.until)}`;
  return row(
    at,
    event,
    `report ${name} composed: ${sanitizeForLog(payloadType)}, ${summary}, ${when}${odd}`,
    {
      report: name,
      progress: "composed",
      flags,
    },
  );
}

/** Row for the outcome of one attempt. A repeated failure with the same state has none. */
export function triedRow(before: ReportRecord, record: ReportRecord, at: Instant): readonly Change[] {
  const { name, event, state, summary, status, reason, nextTry, attempts } = record;
  const facts = { report: name, progress: state, status, attempts };
  if (state === "sent") {
    const late = attempts > 1 ? `, after ${attempts} tries` : "";
    return [row(at, event, `report ${name} sent: ${summary} (HTTP ${status}${late})`, facts)];
  }
  const isNews = state !== before.state || nextTry === null || before.attempts === 0;
  if (!isNews) return [];
  const again = nextTry === null ? "it is not tried any more" : "it will be tried again";
  const message = `report ${name} was not delivered: ${reason ?? "no reason"}; ${again}`;
  return [row(at, event, message, { ...facts, warning: reason })];
}

/** A descriptor that ends without a report, or with less than it asked for. */
export function obligationRows(obligation: ReportObligation, at: Instant): readonly Change[] {
  if (obligation.state !== "flagged") return [];
  const { event, descriptor, reason, issued } = obligation;
  const rest = issued === null ? "no report" : "no further report";
  const message = `report descriptor ${descriptor} of event ${event}: ${rest}: ${reason ?? ""}`;
  return [
    row(at, event, message, { descriptor: obligationKey(obligation), progress: "flagged", warning: reason }),
  ];
}

export const resentRow = ({ name, event }: ReportRecord, at: Instant): Change =>
  auditRow("operator", at, `report ${name} is sent again by an operator`, { event, facts: { report: name } });
