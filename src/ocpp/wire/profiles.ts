import { z } from "zod";

import type { Desired } from "../../domain/setpoint.ts";
import { iso } from "../../domain/units.ts";
import type { Capabilities, Composite, Limit, ProfilePlace, RateUnit } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/* Setpoints as limits, and limits as charging profiles of both versions. */

/** Electrics of a connector, for conversion between A and W. */
export interface Outlet {
  /** Null: the unit that the charger allows. */
  readonly unit: RateUnit | null;
  readonly phases: number;
  /** Phase to neutral, V. */
  readonly voltage: number;
}

/** A limit in the unit that the charger gets. */
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

export const STATION_MAX_16 = "ChargePointMaxProfile";
export const STATION_MAX_201 = "ChargingStationMaxProfile";

/**
 * Place of a profile at its connector: a charger holds one of each purpose and level. `stationMax`: the version's name for the
 * purpose of a limit of the whole station.
 */
export const placeOf = (
  { connector, transaction, stackLevel }: ProfilePlace,
  stationMax: string,
): Payload => ({
  stackLevel,
  chargingProfilePurpose:
    connector === 0 ? stationMax : transaction === null ? "TxDefaultProfile" : "TxProfile",
});

/** Members of a profile that both versions have. */
const membersOf = (limit: Limit, stationMax: string): Payload => ({
  ...placeOf(limit, stationMax),
  chargingProfileKind: limit.kind === "absolute" ? "Absolute" : "Relative",
  validFrom: iso(limit.from),
  validTo: iso(limit.until),
});

const scheduleOf = ({ kind, until, begin, unit, value, phases }: Limit): Payload => ({
  ...(begin === null ? {} : { duration: Math.ceil((until - begin) / 1000) }),
  ...(begin !== null && kind === "absolute" ? { startSchedule: iso(begin) } : {}),
  chargingRateUnit: unit,
  chargingSchedulePeriod: [
    { startPeriod: 0, limit: value, ...(phases === null ? {} : { numberPhases: phases }) },
  ],
});

/** Charging profile of a limit in OCPP 1.6. */
export const profile16 = (limit: Limit): Payload => ({
  chargingProfileId: limit.profileId,
  ...(limit.transaction === null ? {} : { transactionId: Number(limit.transaction) }),
  ...membersOf(limit, STATION_MAX_16),
  chargingSchedule: scheduleOf(limit),
});

/** Charging profile of a limit in OCPP 2.0.1. */
export const profile201 = (limit: Limit): Payload => ({
  id: limit.profileId,
  ...(limit.transaction === null ? {} : { transactionId: limit.transaction }),
  ...membersOf(limit, STATION_MAX_201),
  chargingSchedule: [{ id: limit.profileId, ...scheduleOf(limit) }],
});

const status = z.literal("Accepted");
const period = z.object({ startPeriod: z.number().catch(0), limit: z.number() });
const schedule = z.object({
  chargingRateUnit: z.enum(["A", "W"]),
  chargingSchedulePeriod: z.array(period).min(1),
});
const composite16 = z.object({ status, chargingSchedule: schedule });
const composite201 = z.object({ status, schedule });

/** The limit of the present period. A schedule may begin later, and some makes (MicroOcpp) write -1 for no limit. */
function presentLimit(found: z.infer<typeof schedule> | undefined): Composite | null {
  const present = found?.chargingSchedulePeriod.find(({ startPeriod }) => startPeriod <= 0);
  return found === undefined || present === undefined || present.limit < 0
    ? null
    : { value: present.limit, unit: found.chargingRateUnit };
}

/** The schedule in force, from an answer in OCPP 1.6. Null: none. */
export const readComposite16 = (payload: Payload): Composite | null =>
  presentLimit(composite16.safeParse(payload).data?.chargingSchedule);

/** The schedule in force, from an answer in OCPP 2.0.1. Null: none. */
export const readComposite201 = (payload: Payload): Composite | null =>
  presentLimit(composite201.safeParse(payload).data?.schedule);
