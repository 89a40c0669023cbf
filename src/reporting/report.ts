import type { ControlSettings } from "../control/ports.ts";
import type { CoordinationEvent } from "../domain/event.ts";
import type { Wanted, ReportInterval, ReportWindow } from "../domain/report.ts";
import {
  type EventId,
  earlier,
  type Instant,
  instant,
  type Window,
  after,
  later,
  type Millis,
  vehicleId,
  type VehicleId,
  hours,
} from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { ResumableTask } from "../platform/cooperative.ts";
import type { Calendar } from "../platform/clock.ts";
import { type Cause, type DataQuality, finite, worstOf } from "./cause.ts";
import {
  comparableDays,
  type FillContext,
  prepareEvidence,
  type Snapshot,
  snapshotOf,
  snapshotOfAll,
  type Subject,
} from "./evidence.ts";
import { AGGREGATED, Aggregation, type Aggregated, fill, type Filled } from "./fill.ts";
import { readingTypeOf, unitsOf } from "./payload.ts";
import { reportName } from "./plan.ts";

/** A filled report, independent of the format in which it is sent. */
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
  /** Oddities of the descriptor and of this report, for people on site. */
  readonly flags: readonly string[];
}

interface PayloadDescriptor {
  readonly payloadType: string;
  readonly readingType: string;
  readonly units: string | null;
}

/** Entry for one vehicle, or AGGREGATED_REPORT. */
export interface ReportResource {
  readonly name: string;
  readonly intervals: readonly FilledInterval[];
  readonly snapshot: Snapshot;
  /** The worst of its intervals. */
  readonly quality: DataQuality;
  readonly causes: readonly Cause[];
}

interface FilledInterval extends ReportInterval {
  /** Value, if there is one, and its DATA_QUALITY. Some services reject a payload without a value. */
  readonly payloads: readonly Payload[];
  /**
   * Facts without a payload type in the standard: CAUSE, INCLUDED [vehicles in the sum, of how many], BASELINE_DAYS.
   */
  readonly notes: readonly Payload[];
}

/** Values of one interval, as OpenADR groups them. */
export interface Payload {
  readonly type: string;
  readonly values: readonly (number | string)[];
}

/** Cap on intervals times vehicles. A larger body (some 10 MB) is rejected by partners. */
const MOST_ENTRIES = 50_000;

/** Part of one vehicle in a report. */
export interface FilledVehicle {
  readonly name: string;
  readonly snapshot: Snapshot;
  readonly parts: readonly Part<Filled>[];
}

/** Fills the part of one vehicle, with steps in between: a long report takes seconds. */
export function* fillVehicle(
  { wanted, basis, intervals }: ReportWindow,
  subject: Subject,
  context: FillContext,
): ResumableTask<FilledVehicle> {
  const evidence = yield* prepareEvidence(subject, context);
  yield;
  const snapshot = snapshotOf(evidence, spanOf(intervals), context.settings);
  const parts: Part<Filled>[] = [];
  for (const interval of intervals) {
    yield;
    parts.push({ interval, found: yield* fill(wanted, interval.span, evidence, context, basis) });
  }
  return { name: subject.vehicle, snapshot, parts };
}

/** A report from a draft with its vehicles. `of`: number of targeted vehicles. */
export function composeReport(
  window: ReportWindow,
  event: Pick<CoordinationEvent, "id" | "programId">,
  draft: Draft,
  of: number,
): Report {
  const { wanted, basis, intervals } = window;
  const { resources, flags } = draft.finish(of);
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

/** Collects the vehicles of a report, so that no more of them are filled and kept than the report holds. */
interface Draft {
  /** True: no further vehicle fits. */
  readonly isFull: () => boolean;
  readonly add: (vehicle: FilledVehicle) => void;
  readonly finish: (of: number) => Filling;
}

/** An empty draft. */
export const draftOf = ({ wanted, intervals }: ReportWindow): Draft =>
  (wanted.aggregate ? together : oneByOne)(wanted, intervals);

function oneByOne(wanted: Wanted, intervals: readonly ReportInterval[]): Draft {
  const resources: ReportResource[] = [];
  const most = Math.floor(MOST_ENTRIES / intervals.length);
  return {
    isFull: () => resources.length >= most,
    add: ({ name, snapshot, parts }) => resources.push(resourceOf(wanted, name, snapshot, parts)),
    finish: (of) => {
      const isCut = resources.length < of;
      return { resources, flags: isCut ? [`too large: ${resources.length} of ${of} vehicles`] : [] };
    },
  };
}

/** Single entry for all vehicles. A flag has the number in the sum. */
function together(wanted: Wanted, intervals: readonly ReportInterval[]): Draft {
  const sums = intervals.map((interval) => ({ interval, sum: new Aggregation(wanted) }));
  const snapshots: Snapshot[] = [];
  return {
    isFull: () => false,
    add: ({ snapshot, parts }) => {
      snapshots.push(snapshot);
      for (const [index, { found }] of parts.entries()) sums[index]?.sum.add(found);
    },
    finish: (of) => {
      const parts = sums.map(({ interval, sum }) => ({ interval, found: sum.result() }));
      const least = Math.min(...parts.map(({ found }) => found.included.vehicles));
      const flags = [
        ...(least < of ? [`${least} of ${of} vehicles are in the sum`] : []),
        ...(wanted.method === "peak" && wanted.quantity === "demand"
          ? ["each vehicle's own peak: they need not have come together"]
          : []),
      ];
      return { resources: [resourceOf(wanted, AGGREGATED, snapshotOfAll(snapshots), parts)], flags };
    },
  };
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
  const payload = value === null ? [] : [{ type: payloadType, values: [value] }];
  const isJudged = quantity === "dataQuality" && value !== null;
  return {
    ...interval,
    payloads: [...payload, ...(isJudged ? [] : [{ type: "DATA_QUALITY", values: [quality] }])],
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

interface ReportedFleet {
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: Pick<ControlSettings, "untargeted" | "vehicleTargetTypes">;
}

/**
 * Distinct vehicles that a report is about. A vehicle unknown here is reported as unknown. Ours come first: the size
 * limit must not leave only those of other depots. The targets of a descriptor are those of its event.
 */
export function reportedVehicles(
  { targets }: Pick<CoordinationEvent, "targets">,
  { vehicles, settings }: ReportedFleet,
): readonly VehicleId[] {
  if (targets.length === 0) return settings.untargeted === "all" ? [...vehicles.keys()] : [];
  const named = targets
    .filter(({ type }) => settings.vehicleTargetTypes.includes(type.toLowerCase()))
    .flatMap(({ values }) => values.map(vehicleId));
  const distinct = [...new Set(named)];
  const isOurs = (id: VehicleId): boolean => vehicles.has(id);
  return [...distinct.filter(isOurs), ...distinct.filter((id) => !isOurs(id))];
}

/** Windows whose readings a report needs. A baseline also needs those of comparable days. */
export function evidenceWindows(
  { intervals, wanted: { quantity } }: ReportWindow,
  calendar: Calendar,
  maxGap: Millis,
): readonly Window[] {
  const hasBaseline = quantity === "baseline" || quantity === "deltaUsage";
  const days = hasBaseline ? intervals.flatMap(({ span }) => comparableDays(span, calendar)) : [];
  return withMargins([spanOf(intervals), ...days], maxGap);
}

/** Windows with `maxGap` added on both sides: a reading there still counts inside. */
export const withMargins = (windows: readonly Window[], maxGap: Millis): readonly Window[] =>
  joined(windows.map(({ from, until }) => ({ from: instant(from - maxGap), until: after(until, maxGap) })));

/** Joins windows that touch or overlap, so that no reading is read twice. */
function joined(windows: readonly Window[]): readonly Window[] {
  const apart: Window[] = [];
  for (const window of windows.toSorted((a, b) => a.from - b.from)) {
    const before = apart.at(-1);
    if (before === undefined || before.until < window.from) apart.push(window);
    else apart[apart.length - 1] = { from: before.from, until: later(before.until, window.until) };
  }
  return apart;
}

/** A charger stores about 2,000 messages in this time. They are read in a few ms. */
const PIECE = hours(6);
/** Readings are not kept so long. */
const LONGEST_KEPT = hours(2 * 365 * 24);

/** Splits a window into pieces to read one by one. Before and after the stored times one piece is enough. */
export function* piecesOf({ from, until }: Window, now: Instant): Generator<Window> {
  let start = from;
  const oldest = instant(now - LONGEST_KEPT);
  while (start < until) {
    const next = start < oldest ? oldest : start < now ? after(start, PIECE) : until;
    yield { from: start, until: earlier(next, until) };
    start = next;
  }
}
