import type { CoordinationEvent, ReportDescriptor } from "../../src/domain/event.ts";
import type { ReportWindow } from "../../src/domain/report.ts";
import { type Instant, iso, minutes } from "../../src/domain/units.ts";
import { type PlanInput, reportPlan, type ReportPlan } from "../../src/reporting/plan.ts";
import { REPORT_DEFAULTS, type ReportSettings } from "../../src/reporting/settings.ts";
import { anEvent, at } from "./anEvent.ts";

/** A report on the energy used, with no counts set. */
export const aDescriptor = (changes: Partial<ReportDescriptor> = {}): ReportDescriptor => ({
  payloadType: "USAGE",
  readingType: "DIRECT_READ",
  targets: [],
  aggregate: false,
  historical: true,
  frequency: null,
  numIntervals: null,
  repeat: null,
  startInterval: null,
  ...changes,
});

/** The counts as the reference tables write them: startInterval, numIntervals, historical, frequency, repeat. */
export type Counts = readonly [number | null, number | null, "T" | "F", number | null, number | null];

export const counts = ([s, n, h, f, r]: Counts): Partial<ReportDescriptor> => ({
  startInterval: s,
  numIntervals: n,
  historical: h === "T",
  frequency: f,
  repeat: r,
});

export const reportSettings = (changes: Partial<ReportSettings> = {}): ReportSettings => ({
  ...REPORT_DEFAULTS,
  ...changes,
});

/** An event from 12:00 for an hour that came at 11:00, with one descriptor. */
export const aReportedEvent = (
  descriptor: Partial<ReportDescriptor> = {},
  changes: Partial<Omit<CoordinationEvent, "hash" | "id">> = {},
): CoordinationEvent =>
  anEvent({ start: at("12:00"), duration: minutes(60), reports: [aDescriptor(descriptor)], ...changes });

export function aPlan(
  event: CoordinationEvent,
  settings: Partial<ReportSettings> = {},
  input: Partial<PlanInput> = {},
): ReportPlan {
  const start = event.start === "now" ? at("11:00") : event.start;
  return reportPlan(
    { event, start, receivedAt: at("11:00"), descriptor: 0, issued: null, ...input },
    reportSettings(settings),
  );
}

const clock = (moment: Instant): string => iso(moment).slice(11, 19).replace(/:00$/, "");

/** `13:00:30 [12:00-12:15 12:15-12:30]`: when a report is due, and what it holds. */
export const windowInWords = ({ due, intervals }: ReportWindow): string =>
  `${clock(due)} [${intervals.map(({ span }) => `${clock(span.from)}-${clock(span.until)}`).join(" ")}]`;

/** `13:00 [0-3]`: the moment it is about, and the intervals it holds. */
export const windowByIds = ({ moment, intervals }: ReportWindow): string =>
  `${clock(moment)} [${intervals[0]?.id}-${intervals.at(-1)?.id}]`;
