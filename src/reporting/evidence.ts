import type { Charger } from "../domain/charger.ts";
import type { Measured, MeasuredKind, Reading, Stated, CommandReading } from "../domain/reading.ts";
import type { Desired } from "../domain/setpoint.ts";
import type { ChargerState } from "../domain/telemetry.ts";
import {
  after,
  type ChargerId,
  earlier,
  type Instant,
  type Millis,
  millis,
  type VehicleId,
  type Window,
} from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import { inSteps, type ResumableTask, runToEnd } from "../platform/cooperative.ts";
import type { Calendar } from "../platform/clock.ts";
import { type Outage, type Finding, nothing } from "./cause.ts";
import { type EnergyRecord, energyRecord, MOST_WATTS, mostWatts, measuredEnergy } from "./energy.ts";
import { atEnd, byCharger, inOrder, last, merged, type Step, stepsOf, within } from "./series.ts";
import type { ReportSettings } from "./settings.ts";

/** Setpoint sent, or planned, for the vehicle on a charger. */
export interface Commanded extends Step<Desired> {
  readonly charger: ChargerId;
}

/** A targeted vehicle and everything known of it for a report. */
export interface Subject {
  readonly vehicle: VehicleId;
  /**
   * Readings of all chargers that the vehicle was on, in any order, other vehicles' included. They reach from `maxGap`
   * before the report to `maxGap` after it. A baseline also needs those of the comparable days.
   */
  readonly readings: readonly Reading[];
  /** Planned setpoints, for forecasts. */
  readonly planned: readonly Commanded[];
  readonly outages: readonly Outage[];
}

/** The configuration by which readings become values of a report. */
export interface FillContext {
  readonly settings: ReportSettings;
  readonly chargers: ReadonlyMap<ChargerId, Charger>;
  readonly vehicles: ReadonlyMap<VehicleId, Vehicle>;
  readonly calendar: Calendar;
}

/** A quantity over time. In `bridged` each value holds until the next, however late that is. */
export interface Signal<Value> {
  readonly steps: readonly Step<Value>[];
  readonly bridged: readonly Step<Value>[];
  readonly times: readonly Instant[];
}

/** Readings of a subject, prepared for questions about windows. */
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

/** Puts a vehicle's readings in their places, without a break. */
export const evidenceOf = (subject: Subject, context: Pick<FillContext, "settings" | "chargers">): Evidence =>
  runToEnd(prepareEvidence(subject, context));

/** Puts a vehicle's readings in their places. A week has 400,000 of them. */
export function* prepareEvidence(
  subject: Subject,
  { settings, chargers }: Pick<FillContext, "settings" | "chargers">,
): ResumableTask<Evidence> {
  const { vehicle, outages, planned } = subject;
  const kinds = new Map<Reading["kind"], Reading[]>();
  yield* inSteps(subject.readings, (reading) => {
    if (reading.quality === "implausible") return;
    const sofar = kinds.get(reading.kind);
    if (sofar === undefined) kinds.set(reading.kind, [reading]);
    else sofar.push(reading);
  });
  function* ofKind<R extends Reading>(isOne: (reading: Reading) => reading is R, kind: R["kind"]) {
    yield;
    return inOrder((kinds.get(kind) ?? []).filter(isOne));
  }
  const measured = (kind: MeasuredKind) =>
    ofKind((reading): reading is Measured => reading.kind === kind, kind);
  const signal = <R extends Reading>(those: readonly R[]): ResumableTask<Signal<R["value"]>> =>
    signalOf(those, vehicle, settings.maxGap);
  const most = (id: ChargerId): number => {
    const charger = chargers.get(id);
    return charger === undefined ? MOST_WATTS : mostWatts(charger);
  };
  const registers = yield* measured("energy");
  const states = yield* ofKind((reading): reading is Stated => reading.kind === "state", "state");
  const commands = yield* ofKind(
    (reading): reading is CommandReading => reading.kind === "setpoint",
    "setpoint",
  );
  return {
    vehicle,
    outages,
    energy: yield* energyRecord(registers, vehicle, most, settings.maxGap),
    register: yield* signal(registers),
    power: yield* signal(yield* measured("power")),
    current: yield* signal(yield* measured("current")),
    soc: yield* signal(yield* measured("soc")),
    state: yield* signal(states),
    commanded: merged([...commandedIn(commands, vehicle), ...planned]),
  };
}

function* signalOf<R extends Reading>(
  readings: readonly R[],
  vehicle: VehicleId,
  maxGap: Millis,
): ResumableTask<Signal<R["value"]>> {
  yield;
  const perCharger = [...byCharger(readings).values()];
  yield;
  const steps = perCharger.map((each) => stepsOf(each, vehicle, maxGap, maxGap)).flat();
  yield;
  const bridged = perCharger.map((each) => stepsOf(each, vehicle, FOR_EVER, maxGap)).flat();
  yield;
  const whole = merged(steps);
  yield;
  return {
    steps: whole,
    bridged: merged(bridged),
    times: readings.filter((reading) => reading.vehicle === vehicle).map(({ at }) => at),
  };
}
const FOR_EVER = millis(Infinity);

/** A command holds until the next one for its charger, and never past its own end. */
const commandedIn = (commands: readonly CommandReading[], vehicle: VehicleId): readonly Commanded[] =>
  [...byCharger(commands).values()].flatMap((line) =>
    line.flatMap(({ at, until, value, charger, vehicle: seen }, index): readonly Commanded[] => {
      const next = line[index + 1]?.at ?? after(at, FOR_EVER);
      const step = { from: at, until: earlier(next, until ?? next), value, charger };
      return seen === vehicle ? [step] : [];
    }),
  );

/** State of a vehicle at the end of the report: A, kW, percent, and the energy used in kWh. Null: unknown. */
export interface Snapshot {
  readonly energy: number | null;
  readonly current: number | null;
  readonly power: number | null;
  readonly soc: number | null;
  /** Last setpoint sent or planned. */
  readonly setpoint: Desired | null;
}

/** Snapshot of one vehicle over the whole span of a report. */
export function snapshotOf(
  { energy, current, power, soc, commanded }: Evidence,
  span: Window,
  { maxGap, percentScale }: ReportSettings,
): Snapshot {
  const used = measuredEnergy(energy, span, maxGap).value;
  const latest = ({ steps }: { readonly steps: readonly Step<number>[] }, by: number): number | null => {
    const value = atEnd(steps, span);
    return value === null ? null : value / by;
  };
  return {
    energy: used === null ? null : used / 1000,
    current: latest(current, 1),
    power: latest(power, 1000),
    soc: latest(soc, 100 / percentScale),
    setpoint: last(within(commanded, span)),
  };
}

/**
 * Snapshot of all vehicles. Energies, currents and powers are added up, charge levels averaged. Setpoints cannot be.
 */
export function snapshotOfAll(snapshots: readonly Snapshot[]): Snapshot {
  const known = (pick: (snapshot: Snapshot) => number | null): readonly number[] =>
    snapshots.flatMap((snapshot) => pick(snapshot) ?? []);
  const charges = known(({ soc }) => soc);
  const charge = sum(charges);
  return {
    energy: sum(known(({ energy }) => energy)),
    current: sum(known(({ current }) => current)),
    power: sum(known(({ power }) => power)),
    soc: charge === null ? null : charge / charges.length,
    setpoint: null,
  };
}

const sum = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((a, b) => a + b);

/** A mean over past days, and the number of days. */
export interface Baseline extends Finding<number> {
  readonly days: number;
}

/** Days looked back for comparable ones. */
const LOOK_BACK = 45;
const DAY = 24 * 3_600_000;

/** Same window on earlier days of the same class (working day or weekend), newest first. No overlap with it. */
export function comparableDays(window: Window, calendar: Calendar): readonly Window[] {
  const length: Millis = millis(window.until - window.from);
  const today = calendar(window.from, 0);
  const days: Window[] = [];
  for (let back = Math.ceil(length / DAY); back <= LOOK_BACK; back += 1) {
    const day = calendar(window.from, back);
    if (isWeekend(day.weekday) === isWeekend(today.weekday))
      days.push({ from: day.at, until: after(day.at, length) });
  }
  return days;
}

const isWeekend = (weekday: number): boolean => weekday > 5;

/**
 * Wh that the vehicle used in the same window on its last comparable days. Days on which it was held back in that
 * window, and days without complete readings, do not count: they do not show what it would have used.
 */
export function* baselineOf(
  evidence: Evidence,
  window: Window,
  calendar: Calendar,
  { baselineDays, maxGap }: Pick<ReportSettings, "baselineDays" | "maxGap">,
): ResumableTask<Baseline> {
  const used: number[] = [];
  for (const day of comparableDays(window, calendar)) {
    if (used.length >= baselineDays) break;
    yield;
    if (within(evidence.commanded, day).some(({ value }) => value.kind !== "release")) continue;
    const { value, quality } = measuredEnergy(evidence.energy, day, maxGap);
    if (value !== null && quality === "OK") used.push(value);
  }
  if (used.length === 0) return { ...nothing("no comparable days"), days: 0 };
  const value = used.reduce((sum, wattHours) => sum + wattHours) / used.length;
  return { value, quality: "OK", causes: [], days: used.length };
}
