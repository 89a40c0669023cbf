import { z } from "zod";

import { type Ask, PAYLOAD_TYPES, type ReportDescriptor } from "../../../domain/event.ts";
import { eventId, iso, millis, type EventId } from "../../../domain/units.ts";
import {
  by,
  folded,
  optionally,
  spelling,
  text,
  readId,
  isProblem,
  misfit,
  type Problem,
  targets,
} from "./fields.ts";
import { readTimespan, readMoment, readTimestamp } from "./times.ts";

/** JSON has -0. It equals 0, but Object.is and some stores distinguish them. */
const positiveZero = (value: number): number => value + 0;

/** The id of an event, under the rules of `readId`. */
export function readEventId(found: unknown): EventId | Problem {
  const id = readId(found);
  return isProblem(id) ? id : eventId(id);
}

const readProgramId = (found: unknown): string | Problem => (found === "" ? "" : readId(found));

const readPriority = (found: unknown): number | Problem =>
  typeof found === "number" && Number.isSafeInteger(found)
    ? positiveZero(found)
    : misfit(found, "a priority", "an integer or null");

const readLevel = (found: unknown): number | Problem =>
  typeof found === "number" && Number.isFinite(found)
    ? positiveZero(found)
    : misfit(found, "a level", "a finite number");

// An unreadable descriptor must not reject the event: the report plan decides what a report needs.
// Readers instead of z.catch, which builds an error for every absent field.
const label = by((found) => (typeof found === "string" ? found : ""));
const flag = (absent: boolean) => by((found) => (typeof found === "boolean" ? found : absent));
const count = by((found) => (Number.isSafeInteger(found) ? positiveZero(Number(found)) : null));

const reportDescriptor = folded("a report descriptor", {
  payloadType: label,
  readingType: label,
  targets,
  aggregate: flag(false),
  historical: flag(true),
  frequency: count,
  numIntervals: count,
  repeat: count,
  startInterval: count,
}) satisfies z.ZodType<ReportDescriptor>;

const NOTHING_KNOWN = reportDescriptor.parse({});

/** An unreadable descriptor becomes one that requests nothing known, so that the event keeps its control. */
const reportDescriptors = z
  .unknown()
  .optional()
  .transform((found): readonly ReportDescriptor[] => {
    const entries = Array.isArray(found) ? found : found === undefined ? [] : [found];
    return entries.map((entry) => reportDescriptor.safeParse(entry).data ?? NOTHING_KNOWN);
  });

const intervalPeriod = folded("an interval period", {
  start: by((found) => {
    const start = readTimestamp(found);
    return isProblem(start) ? start : { start, wireStart: start === "now" ? String(found) : iso(start) };
  }),
  duration: by(readTimespan),
  randomizeStart: optionally(readTimespan, millis(0)),
});

const payload = folded("a payload", {
  payloadType: z.string({ error: ({ input }) => misfit(input, "a payload type", "a JSON string").problem }),
  targetCurrent: z.unknown().optional(),
  targetPower: z.unknown().optional(),
}).transform(({ payloadType, targetCurrent, targetPower }, context): Ask => {
  const level = (field: string, found: unknown): number => {
    const value = readLevel(found);
    if (!isProblem(value)) return value;
    context.addIssue({ code: "custom", message: value.problem, path: [field] });
    return z.NEVER;
  };
  switch (payloadType) {
    case PAYLOAD_TYPES.current:
      return { kind: "current", level: level("targetCurrent", targetCurrent) };
    case PAYLOAD_TYPES.power:
      return { kind: "power", level: level("targetPower", targetPower) };
    default:
      return { kind: "unknown", payloadType };
  }
});

/** An event without its ID, absence turned into values. Only the first problem is reported. */
export const wireEvent = z.object({
  modificationDateTime: optionally(readMoment, null),
  createdDateTime: optionally(readMoment, null),
  name: text,
  programID: optionally(readProgramId, ""),
  priority: optionally(readPriority, null),
  intervalPeriod,
  payload,
  targets,
  reportDescriptors,
});

/** The fields of an event, and two other names that senders use for ID and name. */
export const eventNames = spelling([...wireEvent.keyof().options, "ID", "eventId", "eventName"]);
