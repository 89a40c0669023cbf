import { z } from "zod";
import { type Instant, iso } from "../domain/units.ts";

/** Report body of openadr3.md 2: optional members stay optional, unknown members are rejected. */
const text = z.string().min(1);
const name = text.max(128);
const period = z.strictObject({
  start: z.iso.datetime(),
  duration: z.string().regex(/^P(?=.)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?$/),
});
const value = z.union([z.number(), z.string(), z.boolean()]);
const interval = z.strictObject({
  id: z.int32(),
  intervalPeriod: period.optional(),
  payloads: z.array(z.strictObject({ type: name, values: z.array(value).min(1) })).min(1),
});
const resource = z.strictObject({
  resourceName: name,
  intervalPeriod: period.optional(),
  intervals: z.array(interval).min(1),
});
const descriptor = {
  payloadType: name,
  readingType: text.optional(),
  units: text.optional(),
  accuracy: z.number().optional(),
  confidence: z.int().min(0).max(100).optional(),
};
const openAdr = { eventID: name, clientName: name, reportName: text.optional() };
const resources = z.array(resource);

const openAdr30 = z.strictObject({
  ...openAdr,
  programID: name,
  payloadDescriptors: z.array(z.strictObject(descriptor)).optional(),
  resources,
});
const openAdr31 = z.strictObject({
  ...openAdr,
  payloadDescriptors: z
    .array(z.strictObject({ objectType: z.literal("REPORT_PAYLOAD_DESCRIPTOR"), ...descriptor }))
    .optional(),
  resources,
});

/** Report format of a newer service (openadr3.md 0). */
const action = z.strictObject({
  payloadType: z.literal("VehicleChargeAction"),
  resourceId: name,
  location: z.strictObject({ latitude: z.number(), longitude: z.number() }).optional(),
  actionType: z.enum(["Start", "Stop"]).optional(),
  current: z.number().optional(),
  power: z.number().optional(),
  stateOfCharge: z.number().min(0).max(100).optional(),
  batteryCapacity: z.number().optional(),
  kiloWattHours: z.number().optional(),
  dataQuality: text.optional(),
  cause: text.optional(),
});
const vehicleChargeAction = z.strictObject({ eventId: name, name: text, payloads: z.array(action) });

const FORMATS = [
  ["openadr30", openAdr30],
  ["openadr31", openAdr31],
  ["vehicleChargeAction", vehicleChargeAction],
] as const;

/** A report that a simulated partner accepted. */
export interface AcceptedReport {
  readonly id: string;
  readonly at: Instant;
  readonly format: (typeof FORMATS)[number][0];
  /** Event id. */
  readonly event: string;
  readonly body: object;
}

/** Accepted reports in order of arrival, repeats included. */
export class ReportTray {
  readonly accepted: AcceptedReport[] = [];

  /** Stores a report of any of the three formats. A string: the reason why it is rejected. */
  accept(body: unknown, at: Instant): AcceptedReport | string {
    const wrong: string[] = [];
    for (const [format, schema] of FORMATS) {
      const read = schema.safeParse(body);
      if (!read.success) {
        const [issue] = read.error.issues;
        wrong.push(`${format}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`);
        continue;
      }
      const event = "eventID" in read.data ? read.data.eventID : read.data.eventId;
      const report = { id: `R-${this.accepted.length + 1}`, at, format, event, body: read.data };
      this.accepted.push(report);
      return report;
    }
    return `no report: ${wrong.join("; ")}`;
  }
}

/** Answer to a report: the report with id and dates (openadr3.md 0 and 2). */
export const reportAnswer = ({ id, at, body }: AcceptedReport): object => ({
  id,
  createdDateTime: iso(at),
  modificationDateTime: iso(at),
  ...body,
});
