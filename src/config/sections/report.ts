import * as z from "zod";

import type { Millis } from "../../domain/units.ts";
import { REPORT_DEFAULTS, type ReportSettings } from "../../reporting/settings.ts";
import { duration, count, quantity, reads } from "../fields/quantities.ts";

const path = reads(
  (text) => (/^\/[\x21\x22\x24-\x7e]{0,510}$/.test(text) ? text : null),
  "a path that starts with /, e.g. /{family}/v1/reports",
);

/** Content, format and retries of reports. */
export const reportSection = z.strictObject({
  enabled: z
    .boolean()
    .prefault(true)
    .describe(
      "Whether reports are sent. Default true. If false, each report descriptor is flagged in the record.",
    ),
  mode: z
    .enum(["auto", "event", "implied", "fixed", "frequencySeconds", "frequencyMinutes"])
    .prefault(REPORT_DEFAULTS.mode)
    .describe(
      "What an interval of a report is: auto divides the event so that the requested reports fill it; event is the whole event; implied continues after the event; fixed has steps of subInterval; in the last two the descriptor's frequency is a time. Default auto.",
    ),
  subInterval: duration("1s", "1d")
    .prefault("15m")
    .describe("Length of an interval if the partner names none, and in mode fixed. Default 15m."),
  minInterval: duration("1s", "1d")
    .prefault("1m")
    .describe("Shortest interval, unless the event is shorter. Default 1m."),
  maxIntervals: count(1, 10_000)
    .prefault(REPORT_DEFAULTS.maxIntervals)
    .describe("Most intervals in one report, and most reports planned ahead. Default 96."),
  settleDelay: duration("0s", "1h")
    .prefault("30s")
    .describe("How long a report waits for late readings. Default 30s."),
  catchUp: z
    .enum(["latest", "all", "none"])
    .prefault(REPORT_DEFAULTS.catchUp)
    .describe(
      "Which reports are sent that were due before their event arrived: the latest, all or none. Default latest.",
    ),
  continueAfterEvent: z
    .boolean()
    .prefault(REPORT_DEFAULTS.continueAfterEvent)
    .describe("Whether a descriptor that repeats without end continues after the event. Default false."),
  onCancel: z
    .enum(["none", "partial"])
    .prefault(REPORT_DEFAULTS.onCancel)
    .describe(
      "What is reported of a withdrawn event: none, or the part before the withdrawal. Reports that were due before are always sent. Default none.",
    ),
  forecastSource: z
    .enum(["setpoint", "none"])
    .prefault(REPORT_DEFAULTS.forecastSource)
    .describe("Source of a forecast: the planned setpoints, or none (the report says so). Default setpoint."),
  percentScale: z
    .union([z.literal(100), z.literal(1)], { error: "100 or 1" })
    .prefault(REPORT_DEFAULTS.percentScale)
    .describe("Value of a full battery: 100 or 1. Default 100. Change it when the partner asks for it."),
  baselineDays: count(1, 45)
    .prefault(REPORT_DEFAULTS.baselineDays)
    .describe("Comparable days in a baseline, of the 45 before. Default 10."),
  maxGap: duration("2m", "1h")
    .prefault("5m")
    .describe("Longer silence of a charger is a gap, and is reported as one. Default 5m."),
  format: z
    .enum(["openadr30", "openadr31", "vehicleChargeAction"])
    .prefault("openadr30")
    .describe("Format of a report. Default openadr30. The contract does not define it: ask the partner."),
  family: z
    .enum(["energy-coordination", "vtn"])
    .nullable()
    .prefault(null)
    .describe("Path family of the reports: energy-coordination or vtn. Default null: that of the events."),
  path: path
    .prefault("/{family}/v1/reports")
    .describe("Path of reports, after vtn.baseUrl. Default /{family}/v1/reports."),
  clientName: z
    .string()
    .min(1)
    .max(128)
    .nullable()
    .prefault(null)
    .describe("Name of this client in reports. Default null: vtn.clientId."),
  notes: z
    .boolean()
    .prefault(true)
    .describe(
      "Whether a report states why a value is missing (CAUSE) and how many vehicles are in a sum (INCLUDED), as private payload types. Default true. Switch it off if the partner refuses them.",
    ),
  location: z
    .strictObject({
      latitude: quantity(-90, 90, "degrees", 59.91).describe("Degrees north. Required within location."),
      longitude: quantity(-180, 180, "degrees", 10.75).describe("Degrees east. Required within location."),
    })
    .nullable()
    .prefault(null)
    .describe("Location of the site, for the format vehicleChargeAction. Default null: not sent."),
  giveUpAfter: duration("1m", "30d")
    .prefault("7d")
    .describe("How long an undelivered report is retried before it is flagged as failed. Default 7d."),
  keepReadings: duration("1d", "400d")
    .prefault("50d")
    .describe(
      "How long readings are kept, for baselines at least 46d. Default 50d. A charger needs about 1.1 MB a day, in PostgreSQL twice that, and from the ninth day on a sixth. retention.bytes limits the total; beyond it the oldest are deleted first. Ages count only while the partner's clock agrees with ours.",
    ),
});

/** Settings of reports. */
export interface ReportConfig extends ReportSettings {
  readonly enabled: boolean;
  readonly format: "openadr30" | "openadr31" | "vehicleChargeAction";
  /** After `vtn.baseUrl`. */
  readonly path: string;
  readonly clientName: string;
  readonly notes: boolean;
  readonly location: { readonly latitude: number; readonly longitude: number } | null;
  readonly giveUpAfter: Millis;
  readonly keepReadings: Millis;
}

/** The family and the client name default to those of the section `vtn`. */
export const reportConfig = (
  { family, path, clientName, ...section }: z.infer<typeof reportSection>,
  vtn: { readonly family: string; readonly clientId: string },
): ReportConfig => ({
  ...section,
  path: path.replaceAll("{family}", family ?? vtn.family),
  clientName: clientName ?? vtn.clientId,
});
