import { z } from "zod";
import { type Instant, iso } from "../domain/units.ts";

/** openadr3.md 2. What is not required there is not asked for; what is not known there is refused. */
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

/** openadr3.md 0: the next version of a service of the same kind. */
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

/** A report that a simulated partner took, in the format that it has. */
export interface TakenReport {
  readonly id: string;
  readonly at: Instant;
  readonly format: (typeof FORMATS)[number][0];
  /** Of the event that it is about. */
  readonly event: string;
  readonly body: object;
}

/** Every report that came, in order; the same one twice is there twice. */
export class ReportTray {
  readonly taken: TakenReport[] = [];

  /** Takes a report of any of the three formats; a text says what is wrong with it. */
  take(body: unknown, at: Instant): TakenReport | string {
    const wrong: string[] = [];
    for (const [format, schema] of FORMATS) {
      const read = schema.safeParse(body);
      if (!read.success) {
        const [issue] = read.error.issues;
        wrong.push(`${format}: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`);
        continue;
      }
      const event = "eventID" in read.data ? read.data.eventID : read.data.eventId;
      const report = { id: `R-${this.taken.length + 1}`, at, format, event, body: read.data };
      this.taken.push(report);
      return report;
    }
    return `no report: ${wrong.join("; ")}`;
  }
}

/** How a partner answers it: the report with what it adds (openadr3.md 0 and 2). */
export const reportAnswer = ({ id, at, body }: TakenReport): object => ({
  id,
  createdDateTime: iso(at),
  modificationDateTime: iso(at),
  ...body,
});
