import type { Desired } from "../control/setpoint.ts";
import type { Charger } from "../site/charger.ts";
import type { ChargerState } from "../site/telemetry.ts";
import type { Vehicle } from "../site/vehicle.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  type Millis,
  millis,
  type VehicleId,
} from "../units.ts";
import type { Calendar } from "./baseline.ts";
import type { Outage } from "./cause.ts";
import { type EnergyRecord, energyRecord } from "./energy.ts";
import type { Measured, MeasuredKind, Reading, Stated, Told } from "./reading.ts";
import { MOST_WATTS, mostWatts } from "./register.ts";
import { byCharger, inOrder, merged, type Step, stepsOf } from "./series.ts";
import type { ReportSettings } from "./settings.ts";

/** What a charger was told, or will be, for the vehicle on it. */
export interface Commanded extends Step<Desired> {
  readonly charger: ChargerId;
}

/** One targeted vehicle, with all that is known of it for a report. */
export interface Subject {
  readonly vehicle: VehicleId;
  /**
   * In any order: everything that the chargers it was on said, others' vehicles included, from `maxGap` before the
   * report to `maxGap` after it; for a baseline also around the same windows of the comparable days.
   */
  readonly readings: readonly Reading[];
  /** What it will be told, for forecasts. */
  readonly planned: readonly Commanded[];
  readonly outages: readonly Outage[];
}

export interface FillContext {
  readonly settings: ReportSettings;
  readonly chargers: ReadonlyMap<ChargerId, Charger>;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly calendar: Calendar;
}

/** One quantity as it held over time; `bridged` is the same with each value held until the next, however late. */
export interface Signal<Value> {
  readonly steps: readonly Step<Value>[];
  readonly bridged: readonly Step<Value>[];
  readonly times: readonly Instant[];
}

/** A subject in the form in which windows are asked of it. */
export interface Evidence {
  readonly vehicle: VehicleId;
  readonly energy: EnergyRecord;
  /** Wh. */
  readonly register: Signal<number>;
  /** W. */
  readonly power: Signal<number>;
  /** A. */
  readonly current: Signal<number>;
  /** Percent. */
  readonly soc: Signal<number>;
  readonly state: Signal<ChargerState>;
  readonly commanded: readonly Commanded[];
  readonly outages: readonly Outage[];
}

/** Puts a vehicle's readings in their places. */
export function evidenceOf(subject: Subject, { settings, chargers }: FillContext): Evidence {
  const { vehicle, outages, planned } = subject;
  const readings = inOrder(subject.readings.filter(({ quality }) => quality !== "implausible"));
  const measured = (kind: MeasuredKind): readonly Measured[] =>
    readings.filter((reading): reading is Measured => reading.kind === kind);
  const signal = <R extends Reading>(those: readonly R[]): Signal<R["value"]> =>
    signalOf(those, vehicle, settings.maxGap);
  const most = (id: ChargerId): number => {
    const charger = chargers.get(id);
    return charger === undefined ? MOST_WATTS : mostWatts(charger);
  };
  const registers = measured("energy");
  return {
    vehicle,
    outages,
    energy: energyRecord(registers, vehicle, most, settings.maxGap),
    register: signal(registers),
    power: signal(measured("power")),
    current: signal(measured("current")),
    soc: signal(measured("soc")),
    state: signal(readings.filter((reading): reading is Stated => reading.kind === "state")),
    commanded: merged([...toldIn(readings, vehicle), ...planned]),
  };
}

function signalOf<R extends Reading>(
  readings: readonly R[],
  vehicle: VehicleId,
  maxGap: Millis,
): Signal<R["value"]> {
  const lines = [...byCharger(readings).values()];
  return {
    steps: merged(lines.flatMap((line) => stepsOf(line, vehicle, maxGap, maxGap))),
    bridged: merged(lines.flatMap((line) => stepsOf(line, vehicle, FOR_EVER, maxGap))),
    times: readings.filter((reading) => reading.vehicle === vehicle).map(({ at }) => at),
  };
}
const FOR_EVER = millis(Infinity);

/** A command holds until the next one for its charger, and never past its own end. */
const toldIn = (readings: readonly Reading[], vehicle: VehicleId): readonly Commanded[] =>
  [...byCharger(readings.filter((reading): reading is Told => reading.kind === "setpoint")).values()].flatMap(
    (line) =>
      line.flatMap(({ at, until, value, charger, vehicle: seen }, index): readonly Commanded[] => {
        const next = line[index + 1]?.at ?? after(at, FOR_EVER);
        const step = { from: at, until: earlier(next, until ?? next), value, charger };
        return seen === vehicle ? [step] : [];
      }),
  );
