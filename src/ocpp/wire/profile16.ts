import { z } from "zod";

import { iso } from "../../domain/units.ts";
import type { Composite, Limit } from "./dialect.ts";
import type { Payload } from "./frame.ts";

/** Charging profiles and schedules in OCPP 1.6. */

/** Charging profile of a limit. */
export function profileOf(limit: Limit): Payload {
  const { connector: id, transaction: inTransaction, kind, from, until, begin } = limit;
  return {
    chargingProfileId: limit.profileId,
    ...(inTransaction === null ? {} : { transactionId: Number(inTransaction) }),
    stackLevel: limit.stackLevel,
    chargingProfilePurpose:
      id === 0 ? "ChargePointMaxProfile" : inTransaction === null ? "TxDefaultProfile" : "TxProfile",
    chargingProfileKind: kind === "absolute" ? "Absolute" : "Relative",
    validFrom: iso(from),
    validTo: iso(until),
    chargingSchedule: {
      duration: Math.ceil((until - begin) / 1000),
      ...(kind === "absolute" ? { startSchedule: iso(begin) } : {}),
      chargingRateUnit: limit.unit,
      chargingSchedulePeriod: [
        {
          startPeriod: 0,
          limit: limit.value,
          ...(limit.phases === null ? {} : { numberPhases: limit.phases }),
        },
      ],
    },
  };
}

const composite = z.object({
  status: z.literal("Accepted"),
  chargingSchedule: z.object({
    chargingRateUnit: z.enum(["A", "W"]),
    chargingSchedulePeriod: z.array(z.object({ limit: z.number() })).min(1),
  }),
});

export function readComposite(payload: Payload): Composite | null {
  const read = composite.safeParse(payload);
  if (!read.success) return null;
  const { chargingRateUnit: unit, chargingSchedulePeriod } = read.data.chargingSchedule;
  const [first] = chargingSchedulePeriod;
  return first === undefined ? null : { value: first.limit, unit };
}
