import type { Json } from "../domain/audit.ts";
import { type PriceQuery, serializePrices, type SerializedPrice, type PriceStand } from "../domain/prices.ts";
import { obligationKey, type ReportRecord } from "../domain/report.ts";
import { type Instant, iso } from "../domain/units.ts";
import type { PriceBoard } from "../prices/board.ts";
import type { ReportSchedule } from "../reporting/obligations.ts";
import { reportName } from "../reporting/plan.ts";
import { spanOf } from "../reporting/report.ts";

/** Price series as `/api/v1/prices`, the control socket and `setpointd prices --json` show it. */
export interface PriceSeriesView extends PriceQuery {
  /** ISO. Null: never. */
  readonly fetchedAt: string | null;
  /** Outcome of the last request since the start. Null: none yet. */
  readonly outcome: string | null;
  readonly reason: string | null;
  /** Oddities in the answer that the prices are from. */
  readonly doubts: readonly string[];
  readonly prices: readonly SerializedPrice[];
  /** Beginning of that answer. */
  readonly raw: string | null;
  readonly [member: string]: Json;
}

/** All configured series, each with the outcome of its last request. */
export const pricesView = (board: PriceBoard): readonly PriceSeriesView[] =>
  [...board.stands.values()].map(({ region, kind, series, outcome, reason }: PriceStand) => ({
    region,
    kind,
    fetchedAt: series === null ? null : iso(series.fetchedAt),
    outcome,
    reason,
    doubts: series?.doubts ?? [],
    prices: series === null ? [] : serializePrices(series.prices),
    raw: series?.raw ?? null,
  }));

/** Seconds until the end of the known spot prices, by region. */
export const priceHorizons = (board: PriceBoard, now: Instant): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...board.stands.values()].flatMap(({ region, kind, series }) => {
      const last = kind === "actual" ? series?.prices.at(-1) : undefined;
      return last === undefined ? [] : [[region, (last.end - now) / 1000]];
    }),
  );

/** Report as `/api/v1/reports`, the control socket and `setpointd reports --json` show it; times are ISO. */
export interface ReportRow {
  /** `<eventID>/<descriptor#>/<k>`. Without the last part where a descriptor ended without a report. */
  readonly name: string;
  readonly event: string;
  readonly descriptor: number;
  /** Requested payload type. Null: no longer known. */
  readonly payloadType: string | null;
  /** `planned`: not due yet. `flagged`: not delivered, for `reason`. */
  readonly state: "planned" | "waiting" | "sent" | "flagged";
  readonly from: string | null;
  readonly until: string | null;
  /** Time of composition. Null: it is composed, or never will be. */
  readonly due: string | null;
  readonly summary: string | null;
  readonly flags: readonly string[];
  readonly composedAt: string | null;
  readonly sentAt: string | null;
  readonly nextTry: string | null;
  readonly attempts: number;
  readonly status: number | null;
  readonly reason: string | null;
  readonly receipt: string | null;
  readonly [member: string]: Json;
}

const isoOrNull = (at: Instant | null): string | null => (at === null ? null : iso(at));

const NOTHING_YET = {
  from: null,
  until: null,
  due: null,
  summary: null,
  flags: [],
  composedAt: null,
  sentAt: null,
  nextTry: null,
  attempts: 0,
  status: null,
  reason: null,
  receipt: null,
} as const;

/** Next report of each descriptor, then descriptors that ended without one, then composed reports, newest first. */
export const reportsView = (
  schedule: ReportSchedule,
  records: readonly ReportRecord[],
): readonly ReportRow[] => [...plannedRows(schedule), ...flaggedRows(schedule), ...records.map(reportRow)];

/** Reason why there is no body to show or send, as one sentence. `moment` formats a time in the site's zone. */
export function bodiless(
  { name, state, due, reason, composedAt }: ReportRow,
  moment: (iso: string) => string,
): string {
  if (composedAt !== null) return `the body of report ${name} is no longer stored`;
  if (state === "planned" && due !== null)
    return `report ${name} is planned: it is composed at ${moment(due)}; there is no body yet`;
  return `${name} has no report: ${reason ?? "the reason is not known"}`;
}

/** Row of a composed report. */
export function reportRow(record: ReportRecord): ReportRow {
  const { span, composedAt, sentAt, nextTry, k: _, since: __, ...rest } = record;
  return {
    ...rest,
    from: iso(span.from),
    until: iso(span.until),
    due: null,
    composedAt: iso(composedAt),
    sentAt: isoOrNull(sentAt),
    nextTry: isoOrNull(nextTry),
  };
}

const plannedRows = ({ upcoming }: ReportSchedule): readonly ReportRow[] =>
  [...upcoming.values()]
    .toSorted((a, b) => b.window.due - a.window.due)
    .map(({ window }) => {
      const { from, until } = spanOf(window.intervals);
      return {
        ...NOTHING_YET,
        name: reportName(window),
        event: window.event,
        descriptor: window.descriptor,
        state: "planned",
        payloadType: window.wanted.payloadType,
        from: iso(from),
        until: iso(until),
        due: iso(window.due),
        flags: window.flags,
      };
    });

const flaggedRows = ({ obligations }: ReportSchedule): readonly ReportRow[] =>
  [...obligations.values()]
    .filter(({ state }) => state === "flagged")
    .toSorted((a, b) => b.receivedAt - a.receivedAt)
    .map((obligation) => ({
      ...NOTHING_YET,
      name: obligationKey(obligation),
      event: obligation.event,
      descriptor: obligation.descriptor,
      state: "flagged",
      payloadType: null,
      reason: obligation.reason,
    }));
