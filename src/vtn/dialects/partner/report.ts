import { Duration } from "luxon";

import type { Json } from "../../../domain/audit.ts";
import type { Desired } from "../../../domain/setpoint.ts";
import { iso, type Window } from "../../../domain/units.ts";
import type { Payload, Report, ReportResource } from "../../../reporting/report.ts";
import type { ReportIdentity, ReportPage } from "../dialect.ts";
import { fieldsOf, spelling } from "./fields.ts";
import { decodeJson } from "./json.ts";

/** Wire format of a report. The partner does not document its own, so the format is a setting. */
export type ReportFormat = "openadr30" | "openadr31" | "vehicleChargeAction";

/** The sender, and values that only the configuration knows. */
export interface ReportSender {
  readonly clientName: string;
  /** True: private payloads are sent too: CAUSE, INCLUDED, BASELINE_DAYS. */
  readonly notes: boolean;
  /** Place of the site. Null: not sent. */
  readonly location: { readonly latitude: number; readonly longitude: number } | null;
}

/** A report in the partner's format. Numbers are finite, with at most six decimals. */
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
 * Members that both versions share. Each interval carries its own period, so that none has to be derived. A
 * missing value is sent as a DATA_QUALITY of MISSING alone, as receivers reject payloads without values.
 * Notes are private payload types, which the standard allows.
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

/** Version 3.1 requires an objectType. */
const typedDescriptors = (report: Report): Json =>
  descriptors(report).map((descriptor) => ({ objectType: "REPORT_PAYLOAD_DESCRIPTOR", ...descriptor }));

/** Caches periods: ten thousand vehicles share the same few intervals. */
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
  // Hours instead of days: a local day need not have 24 of them.
  duration: Duration.fromMillis(until - from)
    .shiftTo("hours", "minutes", "seconds")
    .toISO(),
});

/**
 * The body of a similar service. Known fields: `eventId`, `name`, and for each resource a payload with
 * `payloadType`, `resourceId`, `location`, `actionType: "Start"`, `current`, `power`, `stateOfCharge`. We
 * chose the rest. A pause is "Stop". Units are A, kW and percent. The state is that at the end of the report.
 * Energy is `kiloWattHours`, as in later versions; `dataQuality` and `cause` are ours. `batteryCapacity` is
 * unknown here. Intervals and other payload types have no place in this format.
 */
const vehicleChargeAction = ({ event, name, resources }: Report, sender: ReportSender): Json => ({
  eventId: event,
  name,
  payloads: resources.map((resource) => actionOf(resource, sender)),
});

function actionOf(resource: ReportResource, { notes, location }: ReportSender): Json {
  const { energy, current, power, soc, setpoint } = resource.snapshot;
  return present({
    payloadType: "VehicleChargeAction",
    resourceId: resource.name,
    location,
    actionType: actionTypeOf(setpoint),
    current: current ?? (setpoint?.kind === "current" ? setpoint.amperes : null),
    power: power ?? (setpoint?.kind === "power" ? setpoint.watts / 1000 : null),
    stateOfCharge: soc,
    kiloWattHours: energy,
    ...(notes ? { dataQuality: resource.quality, cause: resource.causes.join("; ") || null } : {}),
  });
}

function actionTypeOf(desired: Desired | null): string | null {
  switch (desired?.kind) {
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

/** Leaves out unknown members. */
const present = (members: { readonly [member: string]: Json }): { readonly [member: string]: Json } =>
  Object.fromEntries(
    Object.entries(members)
      .map(([name, value]) => [name, typeof value === "number" ? rounded(value) : value] as const)
      .filter(([, value]) => value !== null),
  );

/** Rounded to mWh and mA, finer than any meter. Null: JSON cannot write the number. */
const rounded = (value: number): number | null => (Number.isFinite(value) ? Number(value.toFixed(6)) : null);

const names = spelling(["eventID", "reportName", "name", "clientName"]);

/** Identity of a report in any format that we send. Null: no report. */
function identityOf(raw: unknown): ReportIdentity | null {
  const fields = fieldsOf(names, raw);
  const [event, name] = [fields?.eventID, fields?.reportName ?? fields?.name];
  const client = fields?.clientName;
  return typeof event === "string" && typeof name === "string"
    ? { event, name, client: typeof client === "string" ? client : null }
    : null;
}

/** Identity of a body that we composed. */
export const identityIn = (body: string): ReportIdentity | null => {
  const decoded = decodeJson(Buffer.from(body));
  return decoded.kind === "json" ? identityOf(decoded.value) : null;
};

const listNames = spelling(["reports"]);

/** Reads one page of `GET reports`: a bare array or `{reports: [...]}`. Null: no list. */
export function readReportPage(body: Buffer): ReportPage | null {
  const decoded = decodeJson(body);
  if (decoded.kind !== "json") return null;
  const entries = Array.isArray(decoded.value) ? decoded.value : fieldsOf(listNames, decoded.value)?.reports;
  if (!Array.isArray(entries)) return null;
  const reports = entries.flatMap((entry) => identityOf(entry) ?? []);
  return { entries: entries.length, reports };
}

/** A VTN that leaves out the client lists only our own reports. */
export const isSameReport = (ours: ReportIdentity, theirs: ReportIdentity): boolean =>
  ours.event === theirs.event &&
  ours.name === theirs.name &&
  (ours.client === null || theirs.client === null || ours.client === theirs.client);
