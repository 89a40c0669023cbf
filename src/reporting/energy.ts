import type { Charger } from "../domain/charger.ts";
import type { Measured } from "../domain/reading.ts";
import type { ChargerId, Instant, Millis, VehicleId, Window } from "../domain/units.ts";
import { inSteps, type ResumableTask } from "../platform/cooperative.ts";
import { type Cause, type Finding, nothing } from "./cause.ts";
import {
  byCharger,
  gapsIn,
  holesIn,
  integral,
  lengthOf,
  merged,
  reaching,
  type Step,
  within,
} from "./series.ts";

/** Register readings of the chargers that a vehicle was on. */
export interface EnergyRecord {
  /** The vehicle's own segments, charger by charger: disjoint and in order. */
  readonly registers: readonly (readonly Segment[])[];
  readonly faults: readonly RegisterFault[];
  /** Times of register readings with this vehicle plugged in, in order. */
  readonly times: readonly Instant[];
}

const HOUR = 3_600_000;

/**
 * Selects the segments of one vehicle. The vehicle was there at the start, or at the end after an empty bay. Where
 * vehicles changed during a silence, the energy belongs to neither. `readings`: all vehicles on these chargers, in
 * order.
 */
export function* energyRecord(
  readings: readonly Measured[],
  vehicle: VehicleId,
  mostWatts: (charger: ChargerId) => number,
  maxGap: Millis,
): ResumableTask<EnergyRecord> {
  const registers: (readonly Segment[])[] = [];
  const faults: RegisterFault[] = [];
  for (const [charger, onCharger] of byCharger(readings)) {
    const register = yield* registerOf(onCharger, mostWatts(charger));
    registers.push(register.segments.filter((segment) => ownerOf(segment, maxGap) === vehicle));
    for (const fault of register.faults)
      if (fault.first === vehicle || fault.second === vehicle) faults.push(fault);
    yield;
  }
  const times = readings.filter((reading) => reading.vehicle === vehicle).map(({ at }) => at);
  return { registers, faults, times };
}

function ownerOf({ first, second, from, until }: Segment, maxGap: Millis): VehicleId | null {
  if (first !== null && first !== second && until - from > maxGap) return null;
  return first ?? second;
}

/**
 * Wh in a window, by the register alone: last reading up to its end minus last reading up to its start. So adjacent
 * windows add up to the meter's own difference. Nothing is interpolated. Energy over a silence across an edge is booked
 * to neither side, and flagged.
 */
export function measuredEnergy(record: EnergyRecord, window: Window, maxGap: Millis): Finding<number> {
  const segments = record.registers.flatMap((register) => reaching(register, window));
  const whole = segments.filter((segment) => !isTorn(segment, window, maxGap));
  const faults = record.faults.filter(({ from, until }) => from < window.until && until > window.from);
  const silent = gapsIn(record.times, window, maxGap).some(
    (gap) => ![...segments, ...faults].some(({ from, until }) => from <= gap.from && until >= gap.until),
  );
  const isMissing = silent || whole.length < segments.length;
  const isBad = faults.some(({ kind }) => kind !== "stray");
  const booked = whole.filter(({ until }) => until <= window.until);
  const value = booked.reduce((sum, { wattHours }) => sum + wattHours, 0);
  const shifted = whole.reduce((sum, segment) => sum + shiftedEnergy(segment, window), 0);
  const isInexact = Math.abs(shifted) > NOTABLE_SHIFT * Math.abs(value - shifted);
  const causes: readonly Cause[] = [
    ...(isMissing ? ["gap in the readings" as const] : []),
    ...(isBad ? ["meter register cannot be believed" as const] : []),
    ...(faults.length > 0 && !isBad ? ["implausible readings" as const] : []),
    ...(isInexact ? ["readings too far apart for this interval" as const] : []),
  ];
  if (whole.length === 0) return nothing(...(segments.length + faults.length === 0 ? NONE : causes));
  return { value, quality: isMissing ? "MISSING" : isBad ? "BAD" : "OK", causes };
}
const NONE: readonly Cause[] = ["no readings"];

/** Part of the energy in a window that may be booked to its neighbours, or theirs to it, without a note. */
const NOTABLE_SHIFT = 0.1;

/** Wh of a segment across an edge that are booked here and were drawn outside. Negative: the other way round. */
function shiftedEnergy({ from, until, wattHours }: Segment, window: Window): number {
  const rate = wattHours / (until - from);
  if (until > window.until) return -rate * (window.until - Math.max(from, window.from));
  return rate * Math.max(0, window.from - from);
}

/** True for energy that belongs to no single side of an edge: over a silence, or across the whole window. */
function isTorn({ from, until, wattHours }: Segment, window: Window, maxGap: Millis): boolean {
  const [before, after] = [from < window.from, until > window.until];
  if (wattHours === 0 || !(before || after)) return false;
  return until - from > maxGap || (before && after);
}

/**
 * Wh in a window, as an estimate. Segments across an edge are split by time. Where no segment covers the window, it is
 * power times duration.
 */
export function estimatedEnergy(
  { registers }: EnergyRecord,
  power: readonly Step<number>[],
  window: Window,
  maxGap: Millis,
): Finding<number> {
  const rates = registers
    .flatMap((register) => reaching(register, window))
    .map(({ from, until, wattHours }) => ({ from, until, value: wattHours / (until - from) }));
  const counted = within(merged(rates), window);
  const drawn = holesIn(counted, window).flatMap((hole) => within(power, hole));
  const covered = lengthOf(counted) + lengthOf(drawn);
  if (covered === 0) return nothing("no readings");
  const isMissing = window.until - window.from - covered > maxGap;
  return {
    value: integral(counted) + integral(drawn) / HOUR,
    quality: isMissing ? "MISSING" : "ESTIMATED",
    causes: isMissing ? ["gap in the readings"] : [],
  };
}

/** Between two readings of a register, and who was there at each. */
interface Between extends Window {
  readonly first: VehicleId | null;
  readonly second: VehicleId | null;
}

/** Energy between two readings: never negative, never more than the charger can deliver. */
interface Segment extends Between {
  readonly wattHours: number;
}

/** Two readings that no charging explains. Nothing is booked between them. */
interface RegisterFault extends Between {
  /** `reset`: it counts from zero again; `stray`: one reading out of line, the register itself went on. */
  readonly kind: "reset" | "backwards" | "jump" | "stray";
  readonly before: number;
  readonly after: number;
}

/** An energy register in parts, and its readings that no charging explains. */
export interface Register {
  readonly segments: readonly Segment[];
  readonly faults: readonly RegisterFault[];
}

/** No outlet delivers more: the bound where the configuration declares no maximum, W. */
export const MOST_WATTS = 1_000_000;
/** Clocks are read to the second, and meters are not exact: allowed on top of what the charger could deliver. */
const TIMING = 2_000;
const MARGIN = 1.1;
/** A stray reading is recognized when one of the next few continues what was before. */
const LOOK_AHEAD = 3;

/** The most a charger can deliver, W. */
export function mostWatts({ maxPower, maxCurrent, phases, voltage }: Electrics): number {
  const byCurrent = maxCurrent === null ? MOST_WATTS : maxCurrent * phases * voltage;
  return Math.min(maxPower ?? MOST_WATTS, byCurrent);
}
type Electrics = Pick<Charger, "maxPower" | "maxCurrent" | "phases" | "voltage">;

/**
 * Splits the register of a charger (Wh, readings in order) into segments that can be added up, and faults. A fault is a
 * reset, a step backwards, or more energy than the charger could have delivered.
 */
export function* registerOf(readings: readonly Measured[], most: number): ResumableTask<Register> {
  const segments: Segment[] = [];
  const faults: RegisterFault[] = [];
  const resolution = resolutionOf(readings);
  yield;
  let anchor = readings[0];
  yield* inSteps(readings.entries(), ([index, next]) => {
    if (anchor === undefined || index === 0) return;
    const ends = { from: anchor.at, until: next.at, first: anchor.vehicle, second: next.vehicle };
    const kind = faultBetween(anchor, next, most, resolution);
    if (kind === null) {
      segments.push({ ...ends, wattHours: next.value - anchor.value });
      anchor = next;
      return;
    }
    const values = { before: anchor.value, after: next.value };
    const coming = readings.slice(index + 1, index + 1 + LOOK_AHEAD);
    if (isStray(anchor, next, coming, most, resolution)) {
      faults.push({ ...ends, ...values, kind: "stray" });
      return;
    }
    faults.push({ ...ends, ...values, kind });
    anchor = next;
  });
  return { segments, faults };
}

function faultBetween(
  before: Measured,
  next: Measured,
  most: number,
  resolution: number,
): "reset" | "backwards" | "jump" | null {
  const possible = (most * MARGIN * (next.at - before.at + TIMING)) / HOUR + resolution;
  const counted = next.value - before.value;
  if (counted < 0) return next.value <= possible ? "reset" : "backwards";
  return counted > possible ? "jump" : null;
}

/** The register returns to where it was, from above after a jump, from below after a reset. */
const isStray = (
  anchor: Measured,
  suspect: Measured,
  coming: readonly Measured[],
  most: number,
  resolution: number,
): boolean =>
  coming.some(
    (later) =>
      faultBetween(anchor, later, most, resolution) === null &&
      (suspect.value < anchor.value || later.value < suspect.value),
  );

/** Registers that count in whole or tenth kWh move by a step at a time, Wh. */
const resolutionOf = (readings: readonly Measured[]): number =>
  [1000, 100, 10].find((step) => readings.every(({ value }) => isMultiple(value / step))) ?? 1;
/** Forgives what kWh times 1000 leaves behind. */
const isMultiple = (steps: number): boolean => Math.abs(steps - Math.round(steps)) < 1e-6;
