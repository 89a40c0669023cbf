import type { Desired } from "../../domain/setpoint.ts";
import type { Capabilities, RateUnit } from "./dialect.ts";

/** Setpoints as limits of charging profiles. */

export interface Outlet {
  /** Null: the unit that the charger allows. */
  readonly unit: RateUnit | null;
  readonly phases: number;
  /** Phase to neutral, V. */
  readonly voltage: number;
}

export interface Level {
  readonly value: number;
  readonly unit: RateUnit;
}

/** Unit of the profile: as configured, else as the setpoint where the charger allows it. */
export function rateUnit(
  { unit }: Pick<Outlet, "unit">,
  wanted: RateUnit | null,
  { units }: Pick<Capabilities, "units">,
): RateUnit {
  if (unit !== null) return unit;
  if (wanted !== null && (units === null || units.includes(wanted))) return wanted;
  return units?.[0] ?? "A";
}

/** OCPP limits have one decimal. Rounded down, because a limit is an upper bound. */
const toTenths = (value: number): number => Math.floor(value * 10 + 1e-6) / 10;

/** Null: a release, or a level below zero, which OCPP 1.6 cannot express. */
export function levelOf(
  desired: Desired,
  outlet: Outlet,
  capabilities: Pick<Capabilities, "units">,
): Level | null {
  const perAmpere = outlet.phases * outlet.voltage;
  switch (desired.kind) {
    case "release":
      return null;
    case "pause":
      return { value: 0, unit: rateUnit(outlet, null, capabilities) };
    case "current": {
      if (desired.amperes < 0) return null;
      const unit = rateUnit(outlet, "A", capabilities);
      return { unit, value: toTenths(unit === "A" ? desired.amperes : desired.amperes * perAmpere) };
    }
    case "power": {
      if (desired.watts < 0) return null;
      const unit = rateUnit(outlet, "W", capabilities);
      return { unit, value: toTenths(unit === "W" ? desired.watts : desired.watts / perAmpere) };
    }
  }
}

/** A limit in A per phase. */
export const amperesOf = ({ value, unit }: Level, { phases, voltage }: Outlet): number =>
  unit === "A" ? value : value / (phases * voltage);

/** The lower one of a level and a limit in A per phase, in the unit of the level. */
export function atMost(level: Level, amperes: number, { phases, voltage }: Outlet): Level {
  const limit = toTenths(level.unit === "A" ? amperes : amperes * phases * voltage);
  return limit < level.value ? { ...level, value: Math.max(0, limit) } : level;
}
