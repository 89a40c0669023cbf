import type { Charger } from "../site/charger.ts";
import type { Vehicle } from "../site/vehicle.ts";
import { type Amperes, amperes, type Watts, watts } from "../units.ts";
import { type Desired, inWords, type Setpoint } from "./setpoint.ts";

/** Something that changed what an event asked for, in words for people and as values. */
export interface Limit {
  readonly by:
    | "charger maximum"
    | "vehicle maximum"
    | "charger minimum"
    | "held at minimum"
    | "zero"
    | "cannot discharge"
    | "discharge maximum";
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
>;
type Drawn = Pick<Vehicle, "maxCurrent" | "maxPower" | "phases">;

/** How far a measured voltage may be from the declared one before it is not believed (DESIGN 5.4). */
const VOLTAGE_TOLERANCE = 0.1;
/** Measured volts are rounded to this, so that a wandering mains does not become a stream of new setpoints. */
const VOLTAGE_STEP = 5;

/**
 * W per A: phases x volts, with the vehicle's own phases where it has fewer, and a fresh, plausible measured voltage.
 * Measured phases count only for a vehicle that declares its own: others may just not have begun on all of them.
 */
export function wattsPerAmpere(
  charger: Pick<Charger, "phases" | "voltage">,
  vehicle: Drawn | null,
  measuredVoltage: number | null,
  measuredPhases: number | null = null,
): number {
  const declared = vehicle?.phases ?? null;
  const phases = Math.min(charger.phases, declared === null ? charger.phases : (measuredPhases ?? declared));
  const believed =
    measuredVoltage !== null &&
    Math.abs(measuredVoltage - charger.voltage) <= VOLTAGE_TOLERANCE * charger.voltage;
  return phases * (believed ? Math.round(measuredVoltage / VOLTAGE_STEP) * VOLTAGE_STEP : charger.voltage);
}

/**
 * What of a setpoint the charger and the vehicle allow: capped by their maxima in A and W, rounded down to 0.1 A or
 * 1 W; zero or less is pause, and so, or the minimum, is what lies below the charger's minimum (DESIGN 5.4).
 */
export function limit(
  asked: Setpoint,
  charger: Electrics,
  vehicle: Drawn | null,
  measuredVoltage: number | null = null,
  measuredPhases: number | null = null,
): Limited {
  const ratio = wattsPerAmpere(charger, vehicle, measuredVoltage, measuredPhases);
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
    limits.push({ by, asked: inWords(withLevel(asked, value)), allowed: inWords(withLevel(asked, most)) });
    return most;
  };
  const capped = cap(cap(level, chargerMost, "charger maximum"), vehicleMost, "vehicle maximum");
  const allowed = withLevel(asked, capped);

  // Rounded up: rounding must not lead below the minimum either.
  const least = roundedUp(
    asked.kind,
    Math.max((charger.minCurrent ?? 0) * perAmpere, (charger.minPower ?? 0) * perWatt),
  );
  if (levelOf(allowed) > 0 && levelOf(allowed) >= least) return { desired: allowed, limits };
  if (charger.belowMinimum === "hold" && least > 0 && least <= Math.min(chargerMost, vehicleMost)) {
    const minimum = withLevel(asked, least);
    limits.push({ by: "held at minimum", asked: inWords(allowed), allowed: inWords(minimum) });
    return { desired: minimum, limits };
  }
  const by = least > 0 ? "charger minimum" : "zero";
  limits.push({ by, asked: inWords(allowed), allowed: "pause" });
  return { desired: { kind: "pause" }, limits };
}

/** Negative power only where the charger can discharge; it is the size that the maxima cap. */
function belowZero(asked: Setpoint, maxDischarge: Watts | null, vehicleMost: number): Limited {
  const spelled = inWords(asked);
  const pause = (by: Limit["by"]): Limited => ({
    desired: { kind: "pause" },
    limits: [{ by, asked: spelled, allowed: "pause" }],
  });
  if (levelOf(asked) === 0) return pause("zero");
  if (asked.kind === "current" || maxDischarge === null) return pause("cannot discharge");
  const back = Math.abs(asked.watts);
  const most = Math.min(maxDischarge, vehicleMost);
  const fed = roundedDown("power", Math.min(back, most));
  if (fed === 0) return pause("zero");
  const desired: Setpoint = { kind: "power", watts: watts(-fed) };
  const by = maxDischarge <= vehicleMost ? "discharge maximum" : "vehicle maximum";
  return { desired, limits: back > most ? [{ by, asked: spelled, allowed: inWords(desired) }] : [] };
}

const levelOf = (setpoint: Setpoint): number =>
  setpoint.kind === "current" ? setpoint.amperes : setpoint.watts;

/** Rounded down, so that rounding never allows more than was asked; 1e-6 forgives binary fractions. */
const roundedDown = (kind: Setpoint["kind"], value: number): number =>
  kind === "current" ? Math.floor(value * 10 + 1e-6) / 10 : Math.floor(value + 1e-6);

const withLevel = ({ kind }: Setpoint, value: number): Setpoint =>
  kind === "current"
    ? { kind, amperes: amperes(roundedDown(kind, value)) }
    : { kind, watts: watts(roundedDown(kind, value)) };

const roundedUp = (kind: Setpoint["kind"], value: number): number => -roundedDown(kind, -value);
