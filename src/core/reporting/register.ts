import type { Charger } from "../site/charger.ts";
import type { VehicleId, Window } from "../units.ts";
import type { Measured } from "./reading.ts";

/** Between two readings of a register, and who was there at each. */
interface Between extends Window {
  readonly first: VehicleId | null;
  readonly second: VehicleId | null;
}

/** Energy between two readings: never negative, never more than the charger can deliver. */
export interface Segment extends Between {
  readonly wattHours: number;
}

/** Two readings that no charging explains. Nothing is booked between them. */
export interface RegisterFault extends Between {
  /** `reset`: it counts from zero again; `stray`: one reading out of line, the register itself went on. */
  readonly kind: "reset" | "backwards" | "jump" | "stray";
  readonly before: number;
  readonly after: number;
}

export interface Register {
  readonly segments: readonly Segment[];
  readonly faults: readonly RegisterFault[];
}

/** No outlet delivers more: the bound where the configuration declares no maximum, W. */
export const MOST_WATTS = 1_000_000;
const HOUR = 3_600_000;
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
 * What a charger's energy register (Wh; readings in order) says was delivered, as segments that can be added up, and
 * where it cannot be believed: set back, gone backwards, or ahead of anything the charger could have delivered.
 */
export function registerOf(readings: readonly Measured[], most: number): Register {
  const segments: Segment[] = [];
  const faults: RegisterFault[] = [];
  const resolution = resolutionOf(readings);
  let anchor = readings[0];
  readings.forEach((next, index) => {
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
