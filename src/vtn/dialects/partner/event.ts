import { hash } from "node:crypto";
import { z } from "zod";

import type { Rejected } from "../../../domain/delivery.ts";
import {
  type Target,
  type ReportDescriptor,
  type Ask,
  PAYLOAD_TYPES,
  type CoordinationEvent,
} from "../../../domain/event.ts";
import { type EventId, eventId, iso, millis, instant } from "../../../domain/units.ts";
import {
  spelling,
  fieldsOf,
  readId,
  isProblem,
  misfit,
  type Problem,
  by,
  folded,
  optionally,
  text,
  brief,
  readTimestamp,
  readTimespan,
  readMoment,
} from "./fields.ts";

export type EventNotice = { readonly kind: "event"; readonly event: CoordinationEvent } | Rejected;

/** Reads one parsed event into the domain's form. An unreadable event is rejected with path and reason. */
export function readEvent(raw: unknown): EventNotice {
  const found = fieldsOf(eventNames, raw);
  if (found === undefined) return rejected(raw, null, "", misfit(raw, "an event", "a JSON object").problem);
  const id = readEventId(found.ID ?? found.eventId);
  if (isProblem(id)) return rejected(raw, null, "ID", id.problem);
  const excess = overfull(found);
  if (excess !== null) return rejected(raw, id, pathText(excess.path), excess.reason);
  const read = wireEvent.safeParse({ ...found, name: found.name ?? found.eventName });
  if (!read.success) {
    const [first] = read.error.issues;
    return rejected(raw, id, pathText(first?.path ?? []), first?.message ?? "unreadable");
  }
  const wire = read.data;
  const fields = {
    id,
    revision: wire.modificationDateTime ?? wire.createdDateTime ?? instant(0),
    created: wire.createdDateTime ?? instant(0),
    name: wire.name,
    programId: wire.programID,
    priority: wire.priority,
    wireStart: wire.intervalPeriod.start.wireStart,
    start: wire.intervalPeriod.start.start,
    duration: wire.intervalPeriod.duration,
    randomizeStart: wire.intervalPeriod.randomizeStart,
    ask: wire.payload,
    targets: wire.targets,
    reports: wire.reportDescriptors,
  };
  return { kind: "event", event: { ...fields, hash: hash("sha256", JSON.stringify(fields), "hex") } };
}

/** An unreadable entry, with its id if that is readable. */
export const rejected = (raw: unknown, id: EventId | null, path: string, reason: string): Rejected => ({
  kind: "rejected",
  id,
  path,
  reason,
  raw: excerpt(raw),
});

/** `targets[0].values[3]` */
const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .replace(/^\./, "");

const EXCERPT = 4096;

/**
 * JSON text, capped. It is copied through a buffer: a slice would keep the whole text in memory, and may end
 * in half a character.
 */
function excerpt(raw: unknown): string {
  const text = brief(raw);
  return text.length <= EXCERPT ? text : Buffer.from(text.slice(0, EXCERPT)).toString();
}

/** JSON has -0. It equals 0, but Object.is and some stores distinguish them. */
const positiveZero = (value: number): number => value + 0;

/** The id of an event, under the rules of `readId`. */
export function readEventId(found: unknown): EventId | Problem {
  const id = readId(found);
  return isProblem(id) ? id : eventId(id);
}

const readProgramId = (found: unknown): string | Problem => (found === "" ? "" : readId(found));

/** Beyond 2^53 neighbours are equal, which a tie settles. The largest 64-bit integer is some services' lowest priority. */
const readPriority = (found: unknown): number | Problem =>
  typeof found === "number" && Number.isInteger(found)
    ? positiveZero(found)
    : misfit(found, "a priority", "an integer or null");

const readLevel = (found: unknown): number | Problem =>
  typeof found === "number" && Number.isFinite(found)
    ? positiveZero(found)
    : misfit(found, "a level", "a finite number");

/** Limit far above the vehicles of any site: a larger event is rejected to save time and memory. */
const MOST_TARGET_VALUES = 100_000;
/** Limit far above the report descriptors of any event. */
const MOST_REPORT_DESCRIPTORS = 100;

const targetNames = spelling(["targetType", "values"]);

const descriptorNames = spelling(["targets"]);

/** A problem with its place in the event. */
interface Misfit {
  readonly path: readonly (string | number)[];
  readonly reason: string;
}

/**
 * Reads targets in plain loops instead of schemas, because 20,000 vehicles in one event are ordinary. Ends at
 * the first bad entry.
 */
const targets = z
  .unknown()
  .optional()
  .transform((found, context): readonly Target[] => {
    if (found === undefined) return [];
    const read = Array.isArray(found) ? readTargets(found) : misfitAt([], found, "a list", "a JSON array");
    if (!("reason" in read)) return read;
    context.addIssue({ code: "custom", message: read.reason, path: [...read.path] });
    return z.NEVER;
  });

function readTargets(found: readonly unknown[]): readonly Target[] | Misfit {
  const read: Target[] = [];
  for (const [index, entry] of found.entries()) {
    const fields = fieldsOf(targetNames, entry);
    if (fields === undefined) return misfitAt([index], entry, "a target", "a JSON object");
    const { targetType = "", values = [] } = fields;
    if (typeof targetType !== "string")
      return misfitAt([index, "targetType"], targetType, "a text", "a JSON string");
    if (!Array.isArray(values)) return misfitAt([index, "values"], values, "a list", "an array of ids");
    const ids: string[] = [];
    for (const [place, value] of values.entries()) {
      const id = readId(value);
      if (isProblem(id)) return { path: [index, "values", place], reason: id.problem };
      ids.push(id);
    }
    read.push({ type: targetType, values: ids });
  }
  return read;
}

const misfitAt = (path: Misfit["path"], found: unknown, what: string, expected: string): Misfit => ({
  path,
  reason: misfit(found, what, expected).problem,
});

/** Counts targets and descriptors before any is read. Null: within the limits. */
function overfull(event: {
  readonly targets?: unknown;
  readonly reportDescriptors?: unknown;
}): Misfit | null {
  const descriptors = Array.isArray(event.reportDescriptors) ? event.reportDescriptors : [];
  if (descriptors.length > MOST_REPORT_DESCRIPTORS) {
    const reason = `${descriptors.length} report descriptors; expected at most ${MOST_REPORT_DESCRIPTORS}`;
    return { path: ["reportDescriptors"], reason };
  }
  let room = MOST_TARGET_VALUES - valuesIn(event.targets, MOST_TARGET_VALUES);
  if (room < 0) return tooManyValues(["targets"]);
  for (const [index, descriptor] of descriptors.entries()) {
    room -= valuesIn(fieldsOf(descriptorNames, descriptor)?.targets, room);
    if (room < 0) return tooManyValues(["reportDescriptors", index, "targets"]);
  }
  return null;
}

const tooManyValues = (path: Misfit["path"]): Misfit => ({
  path,
  reason: `more than ${MOST_TARGET_VALUES} target values in one event; expected at most as many`,
});

/** A target without values counts as one. Stops counting above `most`. */
function valuesIn(found: unknown, most: number): number {
  if (!Array.isArray(found)) return 0;
  if (found.length > most) return found.length;
  let count = 0;
  for (const entry of found) {
    const values = fieldsOf(targetNames, entry)?.values;
    count += Array.isArray(values) ? Math.max(1, values.length) : 1;
    if (count > most) return count;
  }
  return count;
}

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
const wireEvent = z.object({
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
const eventNames = spelling([...wireEvent.keyof().options, "ID", "eventId", "eventName"]);
