import type { CoordinationEvent } from "../control/event.ts";
import { type EventId, instant, type Window } from "../units.ts";
import { AGGREGATED, aggregate, type Aggregated } from "./aggregate.ts";
import { type Cause, type DataQuality, finite, worstOf } from "./cause.ts";
import { evidenceOf, type FillContext, type Subject } from "./evidence.ts";
import { fill, type Filled } from "./fill.ts";
import { readingTypeOf, unitsOf, type Wanted } from "./payload.ts";
import { reportName, type ReportInterval, type ReportWindow } from "./plan.ts";
import { type Snapshot, snapshotOf, snapshotOfAll } from "./snapshot.ts";

/** A filled report, whatever the format it is sent in. */
export interface Report {
  readonly event: EventId;
  /** "": the event named no program. */
  readonly program: string;
  readonly descriptor: number;
  readonly k: number;
  /** `<eventID>/<descriptor#>/<k>` */
  readonly name: string;
  /** From the start of the first interval to the end of the last. */
  readonly span: Window;
  readonly payloadDescriptors: readonly PayloadDescriptor[];
  readonly resources: readonly ReportResource[];
  /** What is odd about the ask and about this answer, in words, for people on site. */
  readonly flags: readonly string[];
}

interface PayloadDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly units: string | null;
}

/** One vehicle, or AGGREGATED_REPORT. */
export interface ReportResource {
  readonly name: string;
  readonly intervals: readonly FilledInterval[];
  readonly snapshot: Snapshot;
  /** The worst of its intervals. */
  readonly quality: DataQuality;
  readonly causes: readonly Cause[];
}

interface FilledInterval extends ReportInterval {
  /** The value asked for, if there is one, and its DATA_QUALITY: a payload without a value is refused by some. */
  readonly payloads: readonly Payload[];
  /** What the standard has no word for: CAUSE, INCLUDED [vehicles in the sum, of how many], BASELINE_DAYS. */
  readonly notes: readonly Payload[];
}

export interface Payload {
  readonly type: string;
  readonly values: readonly (number | string)[];
}

/** More intervals of more vehicles than this would be a body that no partner takes (some 10 MB). */
const MOST_ENTRIES = 50_000;

/** One vehicle's part of a report. */
export interface FilledVehicle {
  readonly name: string;
  readonly snapshot: Snapshot;
  readonly parts: readonly Part<Filled>[];
}

/** The part of one vehicle: the work of a report, a few ms each, so that other things can be done in between. */
export function fillVehicle(
  { wanted, basis, intervals }: ReportWindow,
  subject: Subject,
  context: FillContext,
): FilledVehicle {
  const evidence = evidenceOf(subject, context);
  return {
    name: subject.vehicle,
    snapshot: snapshotOf(evidence, spanOf(intervals), context.settings),
    parts: intervals.map((interval) => ({
      interval,
      found: fill(wanted, interval.span, evidence, context, basis),
    })),
  };
}

/** A report from the parts of all targeted vehicles. */
export function composeReport(
  window: ReportWindow,
  event: Pick<CoordinationEvent, "id" | "programId">,
  vehicles: readonly FilledVehicle[],
): Report {
  const { wanted, basis, intervals } = window;
  const { resources, flags } = wanted.aggregate
    ? together(wanted, intervals, vehicles)
    : oneByOne(wanted, intervals.length, vehicles);
  const readingType = readingTypeOf(wanted, basis === "forecast");
  return {
    event: event.id,
    program: event.programId,
    descriptor: window.descriptor,
    k: window.k,
    name: reportName(window),
    span: spanOf(intervals),
    payloadDescriptors: [{ payloadType: wanted.payloadType, readingType, units: unitsOf(wanted) }],
    resources,
    flags: [...window.flags, ...flags],
  };
}

interface Part<Found> {
  readonly interval: ReportInterval;
  readonly found: Found;
}

interface Filling {
  readonly resources: readonly ReportResource[];
  readonly flags: readonly string[];
}

function oneByOne(wanted: Wanted, intervals: number, vehicles: readonly FilledVehicle[]): Filling {
  const fitting = vehicles.slice(0, Math.floor(MOST_ENTRIES / intervals));
  const resources = fitting.map(({ name, snapshot, parts }) => resourceOf(wanted, name, snapshot, parts));
  const isCut = fitting.length < vehicles.length;
  return { resources, flags: isCut ? [`too large: ${fitting.length} of ${vehicles.length} vehicles`] : [] };
}

/** One entry for all, which says of how many it is made. */
function together(
  wanted: Wanted,
  intervals: readonly ReportInterval[],
  vehicles: readonly FilledVehicle[],
): Filling {
  const sums = intervals.map((interval, index) => {
    const parts = vehicles.flatMap(({ parts }) => parts.slice(index, index + 1).map(({ found }) => found));
    return { interval, found: aggregate(parts, wanted) };
  });
  const least = Math.min(...sums.map(({ found }) => found.included.vehicles));
  const flags = [
    ...(least < vehicles.length ? [`${least} of ${vehicles.length} vehicles are in the sum`] : []),
    ...(wanted.method === "peak" && wanted.quantity === "demand"
      ? ["each vehicle's own peak: they need not have come together"]
      : []),
  ];
  const snapshot = snapshotOfAll(vehicles.map((vehicle) => vehicle.snapshot));
  return { resources: [resourceOf(wanted, AGGREGATED, snapshot, sums)], flags };
}

const resourceOf = (
  wanted: Wanted,
  name: string,
  snapshot: Snapshot,
  parts: readonly Part<Filled | Aggregated>[],
): ReportResource => ({
  name,
  snapshot,
  intervals: parts.map(({ interval, found }) => written(wanted, interval, found)),
  quality: worstOf(parts.map(({ found }) => found.quality)),
  causes: [...new Set(parts.flatMap(({ found }) => found.causes))],
});

function written(
  { payloadType, quantity }: Wanted,
  interval: ReportInterval,
  found: Filled | Aggregated,
): FilledInterval {
  const { value, quality, causes, days } = finite(found);
  const asked = value === null ? [] : [{ type: payloadType, values: [value] }];
  const isJudged = quantity === "dataQuality" && value !== null;
  return {
    ...interval,
    payloads: [...asked, ...(isJudged ? [] : [{ type: "DATA_QUALITY", values: [quality] }])],
    notes: [
      ...(causes.length > 0 ? [{ type: "CAUSE", values: causes }] : []),
      ...("included" in found
        ? [{ type: "INCLUDED", values: [found.included.vehicles, found.included.of] }]
        : []),
      ...(days === null ? [] : [{ type: "BASELINE_DAYS", values: [days] }]),
    ],
  };
}

/** From the start of the first to the end of the last. */
export const spanOf = (intervals: readonly ReportInterval[]): Window => ({
  from: instant(Math.min(...intervals.map(({ span }) => span.from))),
  until: instant(Math.max(...intervals.map(({ span }) => span.until))),
});
