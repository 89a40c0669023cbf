import { z } from "zod";

import { iso } from "../../domain/units.ts";
import type { Composite, Limit, ProfilePlace } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/** Charging profiles and schedules in both versions. */

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
const schedule = z.object({
  chargingRateUnit: z.enum(["A", "W"]),
  chargingSchedulePeriod: z.array(z.object({ limit: z.number() })).min(1),
});
const composite16 = z.object({ status, chargingSchedule: schedule });
const composite201 = z.object({ status, schedule });

function firstOf(found: z.infer<typeof schedule> | undefined): Composite | null {
  const [first] = found?.chargingSchedulePeriod ?? [];
  return found === undefined || first === undefined
    ? null
    : { value: first.limit, unit: found.chargingRateUnit };
}

/** The schedule in force, from an answer in OCPP 1.6. Null: none. */
export const readComposite16 = (payload: Payload): Composite | null =>
  firstOf(composite16.safeParse(payload).data?.chargingSchedule);

/** The schedule in force, from an answer in OCPP 2.0.1. Null: none. */
export const readComposite201 = (payload: Payload): Composite | null =>
  firstOf(composite201.safeParse(payload).data?.schedule);
