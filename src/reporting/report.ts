import type { ControlSettings } from "../control/decide/settings.ts";
import type { CoordinationEvent } from "../domain/event.ts";
import type { Wanted, ReportInterval, ReportWindow } from "../domain/report.ts";
import type { Desired } from "../domain/setpoint.ts";
import {
  type EventId,
  instant,
  type Window,
  after,
  later,
  type Millis,
  vehicleId,
  type VehicleId,
} from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { Calendar } from "../platform/localTime.ts";
import { type Cause, type DataQuality, finite, worstOf } from "./cause.ts";
import { measuredEnergy } from "./energy.ts";
import { evidenceOf, type FillContext, type Subject, type Evidence, comparableDays } from "./evidence.ts";
import { AGGREGATED, aggregate, type Aggregated, fill, type Filled } from "./fill.ts";
import { readingTypeOf, unitsOf } from "./payload.ts";
import { reportName } from "./plan.ts";
import { last, type Step, within } from "./series.ts";
import type { ReportSettings } from "./settings.ts";

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

/** How a vehicle was at the end of the report, A, kW, percent, and the kWh that it used; null: not known. */
interface Snapshot {
  readonly energy: number | null;
  readonly current: number | null;
  readonly power: number | null;
  readonly soc: number | null;
  /** What it was, or will be, told last. */
  readonly told: Desired | null;
}

/** What one vehicle's evidence says of the whole span of a report. */
function snapshotOf(
  { energy, current, power, soc, commanded }: Evidence,
  span: Window,
  { maxGap, percentScale }: ReportSettings,
): Snapshot {
  const used = measuredEnergy(energy, span, maxGap).value;
  const latest = ({ steps }: { readonly steps: readonly Step<number>[] }, by: number): number | null => {
    const value = last(within(steps, span));
    return value === null ? null : value / by;
  };
  return {
    energy: used === null ? null : used / 1000,
    current: latest(current, 1),
    power: latest(power, 1000),
    soc: latest(soc, 100 / percentScale),
    told: last(within(commanded, span)),
  };
}

/** Energies, currents and powers added up, the charge averaged; what each was told cannot be. */
function snapshotOfAll(snapshots: readonly Snapshot[]): Snapshot {
  const known = (pick: (snapshot: Snapshot) => number | null): readonly number[] =>
    snapshots.flatMap((snapshot) => pick(snapshot) ?? []);
  const charges = known(({ soc }) => soc);
  const charge = sum(charges);
  return {
    energy: sum(known(({ energy }) => energy)),
    current: sum(known(({ current }) => current)),
    power: sum(known(({ power }) => power)),
    soc: charge === null ? null : charge / charges.length,
    told: null,
  };
}

const sum = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((a, b) => a + b);

interface ReportedFleet {
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly settings: Pick<ControlSettings, "untargeted" | "vehicleTargetTypes">;
}

/**
 * Every distinct vehicle that a report is about, ours or not: a report says so of one that is not known here
 * (openadr3 11). The targets of a descriptor are those of its event (partner-interface 2.2).
 */
export function reportedVehicles(
  { targets }: Pick<CoordinationEvent, "targets">,
  { vehicles, settings }: ReportedFleet,
): readonly VehicleId[] {
  if (targets.length === 0) return settings.untargeted === "all" ? [...vehicles.keys()] : [];
  const named = targets
    .filter(({ type }) => settings.vehicleTargetTypes.includes(type.toLowerCase()))
    .flatMap(({ values }) => values.map(vehicleId));
  return [...new Set(named)];
}

/** The times of which readings are needed to fill a report: its own, and for a baseline those of comparable days. */
export function evidenceWindows(
  { intervals, wanted: { quantity } }: ReportWindow,
  calendar: Calendar,
  maxGap: Millis,
): readonly Window[] {
  const hasBaseline = quantity === "baseline" || quantity === "deltaUsage";
  const days = hasBaseline ? intervals.flatMap(({ span }) => comparableDays(span, calendar)) : [];
  return withMargins([spanOf(intervals), ...days], maxGap);
}

/** These windows with `maxGap` on both sides, in which a reading still tells of what is inside. */
export const withMargins = (windows: readonly Window[], maxGap: Millis): readonly Window[] =>
  joined(windows.map(({ from, until }) => ({ from: instant(from - maxGap), until: after(until, maxGap) })));

/** Those that touch or overlap become one, so that nothing is read twice. */
function joined(windows: readonly Window[]): readonly Window[] {
  const apart: Window[] = [];
  for (const window of windows.toSorted((a, b) => a.from - b.from)) {
    const before = apart.at(-1);
    if (before === undefined || before.until < window.from) apart.push(window);
    else apart[apart.length - 1] = { from: before.from, until: later(before.until, window.until) };
  }
  return apart;
}
