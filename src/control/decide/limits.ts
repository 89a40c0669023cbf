import { FINEST_STEP, type Charger } from "../../domain/charger.ts";
import {
  type Desired,
  formatLevel,
  type Setpoint,
  switchedIn,
  type PhaseCount,
  formatPhases,
} from "../../domain/setpoint.ts";
import { type Amperes, amperes, type Watts, watts } from "../../domain/units.ts";
import type { Vehicle } from "../../domain/vehicle.ts";

/** Something that changed what an event asked for, in words for people and as values. */
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

/** How far a measured voltage may be from the declared one before it is not believed (DESIGN 5.4). */
const VOLTAGE_TOLERANCE = 0.1;
/** V; a measured voltage this close to the one in use changes nothing: a wandering mains must not become commands. */
const VOLTAGE_HYSTERESIS = 3;
/** A; below this a phase does not charge: standby electronics draw less. */
const CHARGING_AMPERES = 1;

/**
 * The voltage that limits use after a measurement, in volts, phase to neutral. `last`: the one in use before; null: the
 * declared one. Phases without voltage are left out.
 */
export function voltageInUse(last: number | null, measured: readonly number[], declared: number): number {
  const volts = measured.filter((voltage) => voltage > 0);
  const mean = volts.reduce((sum, voltage) => sum + voltage, 0) / volts.length;
  const used = last ?? declared;
  if (Math.abs(mean - used) <= VOLTAGE_HYSTERESIS) return used;
  return Math.abs(mean - declared) <= VOLTAGE_TOLERANCE * declared ? mean : declared;
}

/** How many phases carry a charging current; null: none does, or the charger does not report currents. */
export const chargingPhases = (currents: readonly number[] | undefined): number | null =>
  currents?.filter((current) => current >= CHARGING_AMPERES).length || null;

/**
 * W per A: phases x volts. A vehicle that declares fewer phases than the charger has counts with its own, or with more
 * where more are measured. Fewer measured phases never count: a vehicle that starts on one phase may go on to three.
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

/** A charger as it stands under what it was told: with the phases that it was switched to. */
export const asSwitched = <C extends Pick<Charger, "phases">>(charger: C, desired: Desired): C => {
  const switched = switchedIn(desired);
  return switched === null ? charger : { ...charger, phases: Math.min(charger.phases, switched.count) };
};

/**
 * What of a setpoint the charger and the vehicle allow (DESIGN 5.4): in amperes where it takes no watts, capped by their
 * maxima in A and W, rounded down to the charger's steps (0.1 A at best) or 1 W. Zero or less becomes a pause. A level
 * below the charger's minimum becomes a pause too, or the minimum where `belowMinimum` is "hold".
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
    return { desired, limits: [{ by: "takes amperes", asked: formatLevel(asked), allowed }, ...limits] };
  }
  const withLevel = (value: number): Setpoint => levelled(asked, value, charger.currentStep);
  const [perAmpere, perWatt] = asked.kind === "current" ? [1, 1 / ratio] : [ratio, 1];
  const most = (current: Amperes | null | undefined, power: Watts | null | undefined): number =>
    Math.min((current ?? Infinity) * perAmpere, (power ?? Infinity) * perWatt);
  const chargerMost = most(charger.maxCurrent, charger.maxPower);
  const vehicleMost = most(vehicle?.maxCurrent, vehicle?.maxPower);

  const level = levelOf(asked);
  if (level <= 0) return belowZero(asked, charger.maxDischarge, vehicleMost);

  const limits: Limit[] = [];
  const cap = (value: number, most: number, by: Limit["by"]): number => {
    if (value <= most) return value;
    limits.push({ by, asked: formatLevel(withLevel(value)), allowed: formatLevel(withLevel(most)) });
    return most;
  };
  const capped = cap(cap(level, chargerMost, "charger maximum"), vehicleMost, "vehicle maximum");
  const allowed = withLevel(capped);

  // Rounded up: rounding must not lead below the minimum either.
  const least = roundedUp(
    asked.kind,
    Math.max((charger.minCurrent ?? 0) * perAmpere, (charger.minPower ?? 0) * perWatt),
    charger.currentStep,
  );
  if (levelOf(allowed) > 0 && levelOf(allowed) >= least) return { desired: allowed, limits };
  if (charger.belowMinimum === "hold" && least > 0 && least <= Math.min(chargerMost, vehicleMost)) {
    const minimum = withLevel(least);
    limits.push({ by: "held at minimum", asked: formatLevel(allowed), allowed: formatLevel(minimum) });
    return { desired: minimum, limits };
  }
  const by = least > 0 ? "charger minimum" : "zero";
  limits.push({ by, asked: formatLevel(allowed), allowed: "pause" });
  return { desired: { kind: "pause" }, limits };
}

/** Negative power only where the charger can discharge; it is the size that the maxima cap. */
function belowZero(asked: Setpoint, maxDischarge: Watts | null, vehicleMost: number): Limited {
  const spelled = formatLevel(asked);
  const pause = (by: Limit["by"]): Limited => ({
    desired: { kind: "pause" },
    limits: [{ by, asked: spelled, allowed: "pause" }],
  });
  if (levelOf(asked) === 0) return pause("zero");
  if (asked.kind === "current" || maxDischarge === null) return pause("cannot discharge");
  const back = Math.abs(asked.watts);
  const most = Math.min(maxDischarge, vehicleMost);
  const fed = roundedDown("power", Math.min(back, most), FINEST_STEP);
  if (fed === 0) return pause("zero");
  const desired: Setpoint = { kind: "power", watts: watts(-fed) };
  const by = maxDischarge <= vehicleMost ? "discharge maximum" : "vehicle maximum";
  return { desired, limits: back > most ? [{ by, asked: spelled, allowed: formatLevel(desired) }] : [] };
}

const levelOf = (setpoint: Setpoint): number =>
  setpoint.kind === "current" ? setpoint.amperes : setpoint.watts;

/**
 * Rounded down, so that rounding never allows more than was asked; 1e-6 forgives binary fractions. Divided, and not
 * multiplied, by the step: 137 x 0.1 is 13.700000000000001.
 */
const roundedDown = (kind: Setpoint["kind"], value: number, step: number): number =>
  kind === "current" ? Math.floor(value / step + 1e-6) / (1 / step) : Math.floor(value + 1e-6);

const levelled = ({ kind }: Setpoint, value: number, step: number): Setpoint =>
  kind === "current"
    ? { kind, amperes: amperes(roundedDown(kind, value, step)) }
    : { kind, watts: watts(roundedDown(kind, value, step)) };

const roundedUp = (kind: Setpoint["kind"], value: number, step: number): number =>
  -roundedDown(kind, -value, step);

/** What of a setpoint a charger could do on one phase and on all three. */
export interface PhaseChoice {
  readonly on: Readonly<Record<PhaseCount, Limited>>;
  /** Three where three can do it, else one where that can; null: neither, so that no switch is worth it. */
  readonly best: PhaseCount | null;
}

/**
 * Below the minimum of three phases one phase may still do what is asked: 2300 W is 10 A on one, and less than 6 A on
 * three. A current is asked for each phase (DESIGN 5.3), so one phase helps there only where a maximum in W is what
 * leaves too little. Null: the charger's phases are left alone.
 */
export function phaseChoice(
  asked: Setpoint,
  charger: Charger,
  vehicle: Vehicle | null,
  measuredVoltage: number | null,
): PhaseChoice | null {
  if (charger.phaseSwitching === null) return null;
  // Phases that carry a current now say nothing of those that it can be switched to.
  const three = limit(asked, charger, vehicle, measuredVoltage);
  const oneOnly = { ...charger, phases: 1, takesWatts: false };
  const one = limit(asked, oneOnly, vehicle, measuredVoltage);
  const why: Limit = { by: "one phase", asked: formatLevel(asked), allowed: formatPhases(1) };
  const on = { 1: { ...one, limits: [why, ...one.limits] }, 3: three };
  const strictly = { belowMinimum: "pause" } as const;
  if (charges(limit(asked, { ...charger, ...strictly }, vehicle, measuredVoltage))) return { on, best: 3 };
  const fits = charges(limit(asked, { ...oneOnly, ...strictly }, vehicle, measuredVoltage));
  return { on, best: fits ? 1 : null };
}

const charges = ({ desired }: Limited): boolean => desired.kind !== "pause";
