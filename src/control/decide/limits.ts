import { FINEST_STEP, type Charger } from "../../domain/charger.ts";
import {
  type Desired,
  levelOnRecord,
  type LevelView,
  viewOf,
  type Setpoint,
  switchedIn,
  type PhaseCount,
  formatPhases,
} from "../../domain/setpoint.ts";
import { type Amperes, amperes, type Watts, watts } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";

/** A limit that changed the asked setpoint. Both levels are as the record keeps them. */
export interface Limit {
  readonly by:
    | "charger maximum"
    | "vehicle maximum"
    | "charger minimum"
    | "held at minimum"
    | "zero"
    | "cannot discharge"
    | "takes amperes"
    | "discharge maximum"
    | "one phase"
    | "phase switch"
    | "phase interval";
  readonly asked: string;
  readonly allowed: string;
}

/** A level after all limits, with those that changed it. */
export interface Limited {
  readonly desired: Desired;
  readonly limits: readonly Limit[];
}

type Electrics = Pick<
  Charger,
  | "minCurrent"
  | "maxCurrent"
  | "minPower"
  | "maxPower"
  | "maxDischarge"
  | "phases"
  | "voltage"
  | "belowMinimum"
  | "takesWatts"
  | "currentStep"
>;
type Drawn = Pick<Vehicle, "maxCurrent" | "maxPower" | "phases">;

/**
 * Largest deviation of a measured voltage from the declared one, as a fraction. Beyond it the declared one is
 * used.
 */
const VOLTAGE_TOLERANCE = 0.1;
/**
 * Volts. A smaller deviation from the voltage in use changes nothing: a varying grid must not cause commands.
 */
const VOLTAGE_HYSTERESIS = 3;
/** Amperes. Below this a phase does not charge: standby electronics draw less. */
const CHARGING_AMPERES = 1;

/**
 * The voltage that limits use after a measurement, in volts, phase to neutral.
 * `last`: the one in use before. Null: the declared one. Phases without voltage are left out.
 */
export function voltageInUse(last: number | null, measured: readonly number[], declared: number): number {
  const volts = measured.filter((voltage) => voltage > 0);
  const mean = volts.reduce((sum, voltage) => sum + voltage, 0) / volts.length;
  const used = last ?? declared;
  if (Math.abs(mean - used) <= VOLTAGE_HYSTERESIS) return used;
  return Math.abs(mean - declared) <= VOLTAGE_TOLERANCE * declared ? mean : declared;
}

/** Number of phases with a charging current. Null: none, or the charger does not report currents. */
export const chargingPhases = (currents: readonly number[] | undefined): number | null =>
  currents?.filter((current) => current >= CHARGING_AMPERES).length || null;

/**
 * W per A: phases x volts.
 * A vehicle with fewer declared phases than the charger counts with its own, or with the measured number if
 * that is higher.
 * Fewer measured phases never count: a vehicle may start on one phase and continue on three.
 */
export function wattsPerAmpere(
  charger: Pick<Charger, "phases" | "voltage">,
  vehicle: Drawn | null,
  measuredVoltage: number | null,
  measuredPhases: number | null = null,
): number {
  const declared = vehicle?.phases ?? charger.phases;
  const phases = Math.min(charger.phases, Math.max(declared, measuredPhases ?? 0));
  return phases * (measuredVoltage ?? charger.voltage);
}

/** The charger with the phases that its last setpoint switched it to. */
export const asSwitched = <C extends Pick<Charger, "phases">>(charger: C, desired: Desired): C => {
  const switched = switchedIn(desired);
  return switched === null ? charger : { ...charger, phases: Math.min(charger.phases, switched.count) };
};

/**
 * Limits a setpoint to what the charger and the vehicle allow.
 * In amperes where the charger accepts no watts, capped by both maxima in A and W.
 * Rounded down to the charger's steps (0.1 A at best) or 1 W.
 * Zero or less becomes a pause.
 * A level below the minimum becomes a pause too, or the minimum where `belowMinimum` is "hold".
 */
export function limit(
  asked: Setpoint,
  charger: Electrics,
  vehicle: Drawn | null,
  measuredVoltage: number | null = null,
  measuredPhases: number | null = null,
): Limited {
  const ratio = wattsPerAmpere(charger, vehicle, measuredVoltage, measuredPhases);
  if (asked.kind === "power" && asked.watts > 0 && !charger.takesWatts) {
    const current: Setpoint = { kind: "current", amperes: amperes(asked.watts / ratio) };
    const { desired, limits } = limit(current, charger, vehicle, measuredVoltage, measuredPhases);
    const allowed = `${roundedDown("current", current.amperes, FINEST_STEP)} A`;
    return { desired, limits: [{ by: "takes amperes", asked: levelOnRecord(asked), allowed }, ...limits] };
  }
  const withLevel = (value: number): Setpoint => levelled(asked, value, charger.currentStep);
  const [perAmpere, perWatt] = asked.kind === "current" ? [1, 1 / ratio] : [ratio, 1];
  const most = (current: Amperes | null | undefined, power: Watts | null | undefined): number =>
    Math.min((current ?? Infinity) * perAmpere, (power ?? Infinity) * perWatt);
  const chargerMost = most(charger.maxCurrent, charger.maxPower);
  const vehicleMost = most(vehicle?.maxCurrent, vehicle?.maxPower);

  const level = valueIn(asked);
  if (level <= 0) return belowZero(asked, charger.maxDischarge, vehicleMost);

  const limits: Limit[] = [];
  const cap = (value: number, most: number, by: Limit["by"]): number => {
    if (value <= most) return value;
    limits.push({ by, asked: levelOnRecord(withLevel(value)), allowed: levelOnRecord(withLevel(most)) });
    return most;
  };
  const capped = cap(cap(level, chargerMost, "charger maximum"), vehicleMost, "vehicle maximum");
  const allowed = withLevel(capped);

  // Rounded up: rounding must not result in less than the minimum.
  const least = roundedUp(
    asked.kind,
    Math.max((charger.minCurrent ?? 0) * perAmpere, (charger.minPower ?? 0) * perWatt),
    charger.currentStep,
  );
  if (valueIn(allowed) > 0 && valueIn(allowed) >= least) return { desired: allowed, limits };
  if (charger.belowMinimum === "hold" && least > 0 && least <= Math.min(chargerMost, vehicleMost)) {
    const minimum = withLevel(least);
    limits.push({ by: "held at minimum", asked: levelOnRecord(allowed), allowed: levelOnRecord(minimum) });
    return { desired: minimum, limits };
  }
  const by = least > 0 ? "charger minimum" : "zero";
  limits.push({ by, asked: levelOnRecord(allowed), allowed: "pause" });
  return { desired: { kind: "pause" }, limits };
}

/** Negative power only where the charger can discharge. The maxima cap its absolute value. */
function belowZero(asked: Setpoint, maxDischarge: Watts | null, vehicleMost: number): Limited {
  const asText = levelOnRecord(asked);
  const pause = (by: Limit["by"]): Limited => ({
    desired: { kind: "pause" },
    limits: [{ by, asked: asText, allowed: "pause" }],
  });
  if (valueIn(asked) === 0) return pause("zero");
  if (asked.kind === "current" || maxDischarge === null) return pause("cannot discharge");
  const back = Math.abs(asked.watts);
  const most = Math.min(maxDischarge, vehicleMost);
  const fed = roundedDown("power", Math.min(back, most), FINEST_STEP);
  if (fed === 0) return pause("zero");
  const desired: Setpoint = { kind: "power", watts: watts(-fed) };
  const by = maxDischarge <= vehicleMost ? "discharge maximum" : "vehicle maximum";
  return { desired, limits: back > most ? [{ by, asked: asText, allowed: levelOnRecord(desired) }] : [] };
}

const valueIn = (setpoint: Setpoint): number =>
  setpoint.kind === "current" ? setpoint.amperes : setpoint.watts;

/**
 * Rounded down, so that rounding never allows more than the asked level. 1e-6 absorbs binary fractions.
 * Divided by 1/step, not multiplied by the step: 137 x 0.1 is 13.700000000000001.
 */
const roundedDown = (kind: Setpoint["kind"], value: number, step: number): number =>
  kind === "current" ? Math.floor(value / step + 1e-6) / (1 / step) : Math.floor(value + 1e-6);

const levelled = ({ kind }: Setpoint, value: number, step: number): Setpoint =>
  kind === "current"
    ? { kind, amperes: amperes(roundedDown(kind, value, step)) }
    : { kind, watts: watts(roundedDown(kind, value, step)) };

const roundedUp = (kind: Setpoint["kind"], value: number, step: number): number =>
  -roundedDown(kind, -value, step);

/** The setpoint as limited on one phase and on three. */
export interface PhaseChoice {
  readonly on: Readonly<Record<PhaseCount, Limited>>;
  /** Three if possible, otherwise one. Null: neither works, so a switch is not useful. */
  readonly best: PhaseCount | null;
}

/**
 * Below the minimum of three phases, one phase may still reach the setpoint: 2300 W is 10 A on one phase.
 * On three phases that is less than 6 A.
 * A current is asked per phase, so there one phase helps only under a maximum in W.
 * Null: the charger's phases are not switched.
 */
export function phaseChoice(
  asked: Setpoint,
  charger: Charger,
  vehicle: Vehicle | null,
  measuredVoltage: number | null,
): PhaseChoice | null {
  if (charger.phaseSwitching === null) return null;
  // The phases in use now do not show which ones the charger can be switched to.
  const three = limit(asked, charger, vehicle, measuredVoltage);
  const oneOnly = { ...charger, phases: 1, takesWatts: false };
  const one = limit(asked, oneOnly, vehicle, measuredVoltage);
  const why: Limit = { by: "one phase", asked: levelOnRecord(asked), allowed: formatPhases(1) };
  const on = { 1: { ...one, limits: [why, ...one.limits] }, 3: three };
  const strictly = { belowMinimum: "pause" } as const;
  if (charges(limit(asked, { ...charger, ...strictly }, vehicle, measuredVoltage))) return { on, best: 3 };
  const fits = charges(limit(asked, { ...oneOnly, ...strictly }, vehicle, measuredVoltage));
  return { on, best: fits ? 1 : null };
}

const charges = ({ desired }: Limited): boolean => desired.kind !== "pause";

/** A level above everything that is configured. */
const UNLIMITED = 1e9;

/** The largest level that charger and vehicle allow. Null: no maximum is configured. */
export function mostOf(charger: Charger, vehicle: Vehicle | null): LevelView | null {
  const isPower = charger.maxCurrent === null && charger.maxPower !== null && charger.takesWatts;
  const asked = isPower
    ? ({ kind: "power", watts: watts(UNLIMITED) } as const)
    : ({ kind: "current", amperes: amperes(UNLIMITED) } as const);
  const { desired, limits } = limit(asked, charger, vehicle);
  return limits.length === 0 ? null : viewOf(desired);
}

/** The level that the charger gets when the events of its vehicle are over. */
export function atRest(charger: Charger, vehicle: Vehicle): Desired {
  const { atEnd } = charger;
  return atEnd.kind === "release" || atEnd.kind === "pause" ? atEnd : limit(atEnd, charger, vehicle).desired;
}

/** `atRest` for people. Null: the charger decides by itself then. */
export function levelAtRest(charger: Charger, vehicle: Vehicle): LevelView | null {
  const rest = atRest(charger, vehicle);
  return rest.kind === "release" ? null : viewOf(rest);
}
