import { Duration } from "luxon";

import type { Json } from "../../../domain/audit.ts";
import type { Desired } from "../../../domain/setpoint.ts";
import { iso, type Window } from "../../../domain/units.ts";
import type { Payload, Report, ReportResource } from "../../../reporting/report.ts";
import { fieldsOf, spelling } from "./fields.ts";
import { decodeJson } from "./json.ts";

/** How a report is spelled. The partner's own format is not shown (partner-interface 2.6), so it is a setting. */
export type ReportFormat = "openadr30" | "openadr31" | "vehicleChargeAction";

/** Who sends, and what only the configuration knows. */
export interface ReportSender {
  readonly clientName: string;
  /** Whether what the standard has no word for is sent too: CAUSE, INCLUDED, BASELINE_DAYS. */
  readonly notes: boolean;
  /** Where the site is; null: not told. */
  readonly location: { readonly latitude: number; readonly longitude: number } | null;
}

/** A report as the partner reads it. Numbers are finite, with at most six decimals. */
export function writeReport(report: Report, format: ReportFormat, sender: ReportSender): Json {
  switch (format) {
    case "openadr30":
      return {
        programID: report.program,
        ...openAdr(report, sender),
        payloadDescriptors: descriptors(report),
      };
    case "openadr31":
      return { ...openAdr(report, sender), payloadDescriptors: typedDescriptors(report) };
    case "vehicleChargeAction":
      return vehicleChargeAction(report, sender);
  }
}

/**
 * What both versions share (openadr3 2). A choice: each interval carries its own period, so that none has to be
 * derived; a missing value is a DATA_QUALITY of MISSING alone, as receivers refuse payloads without values; notes are
 * private payload types, which the standard allows.
 */
function openAdr({ event, name, resources }: Report, { clientName, notes }: ReportSender) {
  const periodOf = periods();
  return {
    eventID: event,
    clientName,
    reportName: name,
    resources: resources.map((resource) => ({
      resourceName: resource.name,
      intervals: resource.intervals.map((interval) => ({
        id: interval.id,
        intervalPeriod: periodOf(interval.span),
        payloads: [...interval.payloads, ...(notes ? interval.notes : [])].map(payloadOf),
      })),
    })),
  };
}

const payloadOf = ({ type, values }: Payload): Json => ({
  type,
  values: values.map((value) => (typeof value === "number" ? rounded(value) : value)),
});

const descriptors = ({ payloadDescriptors }: Report): readonly { readonly [member: string]: Json }[] =>
  payloadDescriptors.map((descriptor) => present({ ...descriptor }));

/** Version 3.1 wants to be told what it is. */
const typedDescriptors = (report: Report): Json =>
  descriptors(report).map((descriptor) => ({ objectType: "REPORT_PAYLOAD_DESCRIPTOR", ...descriptor }));

/** The intervals of ten thousand vehicles are the same few. */
function periods(): (span: Window) => Json {
  const known = new Map<Window, Json>();
  return (span) => {
    const period = known.get(span) ?? periodIn(span);
    known.set(span, period);
    return period;
  };
}

const periodIn = ({ from, until }: Window): Json => ({
  start: iso(from),
  // Hours, not days: a day of a zone need not have 24 of them.
  duration: Duration.fromMillis(until - from)
    .shiftTo("hours", "minutes", "seconds")
    .toISO(),
});

/**
 * The body of a service of the same kind (openadr3 0). Evidence: `eventId`, `name`, and one payload for each resource
 * with `payloadType`, `resourceId`, `location`, `actionType: "Start"`, `current`, `power`, `stateOfCharge`. Choices:
 * "Stop" for a pause, units A, kW and percent, the state at the end of the report, `kiloWattHours` (a field name of
 * its later versions) for the energy, `dataQuality` and `cause`. `batteryCapacity` is not known here. Intervals and
 * other payload types have no place in this format.
 */
const vehicleChargeAction = ({ event, name, resources }: Report, sender: ReportSender): Json => ({
  eventId: event,
  name,
  payloads: resources.map((resource) => actionOf(resource, sender)),
});

function actionOf(resource: ReportResource, { notes, location }: ReportSender): Json {
  const { energy, current, power, soc, told } = resource.snapshot;
  return present({
    payloadType: "VehicleChargeAction",
    resourceId: resource.name,
    location,
    actionType: actionTypeOf(told),
    current: current ?? (told?.kind === "current" ? told.amperes : null),
    power: power ?? (told?.kind === "power" ? told.watts / 1000 : null),
    stateOfCharge: soc,
    kiloWattHours: energy,
    ...(notes ? { dataQuality: resource.quality, cause: resource.causes.join("; ") || null } : {}),
  });
}

function actionTypeOf(told: Desired | null): string | null {
  switch (told?.kind) {
    case "current":
    case "power":
      return "Start";
    case "pause":
      return "Stop";
    case "release":
    case undefined:
      return null;
  }
}

/** What is not known is left out. */
const present = (members: { readonly [member: string]: Json }): { readonly [member: string]: Json } =>
  Object.fromEntries(
    Object.entries(members)
      .map(([name, value]) => [name, typeof value === "number" ? rounded(value) : value] as const)
      .filter(([, value]) => value !== null),
  );

/** To mWh and mA, which is more than any meter means; null: JSON cannot write it. */
const rounded = (value: number): number | null => (Number.isFinite(value) ? Number(value.toFixed(6)) : null);

/** What tells one report from another on the wire. */
export interface ReportIdentity {
  readonly event: string;
  readonly name: string;
  /** Null: the format has none. */
  readonly client: string | null;
}

const names = spelling(["eventID", "reportName", "name", "clientName"]);

/** Of a report, in any of the formats that we send. Null: it is none. */
function identityOf(raw: unknown): ReportIdentity | null {
  const fields = fieldsOf(names, raw);
  const [event, name] = [fields?.eventID, fields?.reportName ?? fields?.name];
  const client = fields?.clientName;
  return typeof event === "string" && typeof name === "string"
    ? { event, name, client: typeof client === "string" ? client : null }
    : null;
}

/** Of a body of our own. */
export const identityIn = (body: string): ReportIdentity | null => {
  const decoded = decodeJson(Buffer.from(body));
  return decoded.kind === "json" ? identityOf(decoded.value) : null;
};

const listNames = spelling(["reports"]);

/** One page of `GET reports`: a bare array or `{reports: [...]}`. Null: it is no list. */
export function readReportPage(
  body: Buffer,
): { readonly entries: number; readonly reports: readonly ReportIdentity[] } | null {
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return null;
  const entries = Array.isArray(decoded.value) ? decoded.value : fieldsOf(listNames, decoded.value)?.reports;
  if (!Array.isArray(entries)) return null;
  const reports = entries.flatMap((entry) => identityOf(entry) ?? []);
  return { entries: entries.length, reports };
}

/** A VTN that does not tell the client lists only our own. */
export const isSameReport = (ours: ReportIdentity, theirs: ReportIdentity): boolean =>
  ours.event === theirs.event &&
  ours.name === theirs.name &&
  (ours.client === null || theirs.client === null || ours.client === theirs.client);
