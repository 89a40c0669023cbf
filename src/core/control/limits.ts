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

/** W per A: phases x volts, with the vehicle's own phases where it has fewer, and a fresh, plausible measured voltage. */
export function wattsPerAmpere(
  charger: Pick<Charger, "phases" | "voltage">,
  vehicle: Drawn | null,
  measuredVoltage: number | null,
): number {
  const phases = Math.min(charger.phases, vehicle?.phases ?? charger.phases);
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
): Limited {
  const ratio = wattsPerAmpere(charger, vehicle, measuredVoltage);
  const scale = asked.kind === "current" ? 1 / ratio : 1;
  const ofCurrent = (value: Amperes | null): number =>
    value === null ? Infinity : asked.kind === "current" ? value : value * ratio;
  const ofPower = (value: Watts | null): number => (value === null ? Infinity : value * scale);

  const level = levelOf(asked);
  if (level <= 0) return belowZero(asked, charger);

  const limits: Limit[] = [];
  const cap = (value: number, most: number, by: Limit["by"]): number => {
    if (value <= most) return value;
    limits.push({ by, asked: inWords(withLevel(asked, value)), allowed: inWords(withLevel(asked, most)) });
    return most;
  };
  const vehicleMost = Math.min(ofCurrent(vehicle?.maxCurrent ?? null), ofPower(vehicle?.maxPower ?? null));
  const capped = cap(
    cap(level, Math.min(ofCurrent(charger.maxCurrent), ofPower(charger.maxPower)), "charger maximum"),
    vehicleMost,
    "vehicle maximum",
  );
  const allowed = withLevel(asked, capped);

  const least = Math.max(finite(ofCurrent(charger.minCurrent)), finite(ofPower(charger.minPower)));
  if (levelOf(allowed) >= roundedDown(asked.kind, least)) return { desired: allowed, limits };
  const minimum = inWords(withLevel(asked, least));
  if (charger.belowMinimum === "hold" && least <= vehicleMost) {
    limits.push({ by: "held at minimum", asked: inWords(allowed), allowed: minimum });
    return { desired: withLevel(asked, least), limits };
  }
  limits.push({ by: "charger minimum", asked: inWords(allowed), allowed: "pause" });
  return { desired: { kind: "pause" }, limits };
}

function belowZero(asked: Setpoint, charger: Electrics): Limited {
  const spelled = inWords(asked);
  if (asked.kind === "power" && asked.watts < 0 && charger.maxDischarge !== null) {
    const back = Math.abs(asked.watts);
    const allowed = watts(-Math.min(Math.floor(back), charger.maxDischarge));
    const desired: Setpoint = { kind: "power", watts: allowed };
    const bit = back > charger.maxDischarge;
    return {
      desired,
      limits: bit ? [{ by: "discharge maximum", asked: spelled, allowed: inWords(desired) }] : [],
    };
  }
  const by = levelOf(asked) < 0 ? "cannot discharge" : "zero";
  return { desired: { kind: "pause" }, limits: [{ by, asked: spelled, allowed: "pause" }] };
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

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);
