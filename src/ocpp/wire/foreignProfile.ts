import { z } from "zod";

import type { RateUnit } from "./dialect.ts";
import type { Call, Payload } from "./frame.ts";
import { timeOf } from "./meterValues.ts";
import { identityOf } from "./ocpp16.ts";

/** Charging profiles of another central system, in the names of both versions of OCPP. */

type Purpose = "station" | "default" | "transaction";

const PURPOSES: Readonly<Record<string, Purpose>> = {
  ChargePointMaxProfile: "station",
  ChargingStationMaxProfile: "station",
  TxDefaultProfile: "default",
  TxProfile: "transaction",
};

interface Schedule {
  /** Null: relative to a start that is not known here. */
  readonly begin: number | null;
  /** Null: without an end. */
  readonly lasts: number | null;
  readonly unit: RateUnit;
  /** `from`: ms after the begin. */
  readonly periods: readonly { readonly from: number; readonly limit: number }[];
}

/** A charging profile that another central system has set. */
export interface ForeignProfile {
  readonly id: number;
  /** 0: the whole station, or a session whose connector is not known yet. */
  readonly connector: number;
  readonly purpose: Purpose;
  readonly stackLevel: number;
  readonly from: number | null;
  readonly to: number | null;
  /** Time after which the schedules begin again. Null: they do not. */
  readonly repeats: number | null;
  /** Latest begin of the session of a remote start. Absent or null: it has begun, or there is none. */
  readonly startsBy?: number | null;
  /** Token of the session of a remote start, in lower case. Absent or null: not known. */
  readonly token?: string | null;
  readonly schedules: readonly Schedule[];
}

/** A limit at a time, in A per phase. */
type ToAmperes = (limit: number, unit: RateUnit) => number;

const schedule = z
  .object({
    duration: z.number().min(0).nullish().catch(null),
    startSchedule: z.unknown().optional().transform(timeOf),
    chargingRateUnit: z.enum(["A", "W"]),
    chargingSchedulePeriod: z
      .array(z.object({ startPeriod: z.number().min(0), limit: z.number() }))
      .max(1024),
  })
  .transform(
    ({ duration, startSchedule: begin, chargingRateUnit: unit, chargingSchedulePeriod }): Schedule => ({
      begin,
      lasts: typeof duration === "number" ? duration * 1000 : null,
      unit,
      periods: chargingSchedulePeriod.map(({ startPeriod, limit }) => ({ from: startPeriod * 1000, limit })),
    }),
  );

const profile = z.object({
  chargingProfileId: z.number().optional(),
  id: z.number().optional(),
  stackLevel: z.number(),
  chargingProfilePurpose: z.string().max(64),
  chargingProfileKind: z.string().max(64).optional(),
  recurrencyKind: z.string().max(64).nullish(),
  validFrom: z.unknown().optional().transform(timeOf),
  validTo: z.unknown().optional().transform(timeOf),
  chargingSchedule: z.union([schedule.transform((one) => [one]), z.array(schedule).max(8)]),
});

const DAY = 86_400_000;

/** Requests that may bring a profile. A remote start brings the one of its session. */
const BRINGING: ReadonlySet<string> = new Set([
  "SetChargingProfile",
  "RemoteStartTransaction",
  "RequestStartTransaction",
]);

/** The profile that a request brings. Null: none that can meet one of ours. */
export function profileIn({ action, payload }: Call): ForeignProfile | null {
  if (!BRINGING.has(action)) return null;
  const read = profile.safeParse(payload["csChargingProfiles"] ?? payload["chargingProfile"]);
  const purpose = read.success ? PURPOSES[read.data.chargingProfilePurpose] : undefined;
  if (!read.success || purpose === undefined) return null;
  const { chargingProfileId, id, stackLevel, chargingProfileKind: kind, recurrencyKind } = read.data;
  const recurring = recurrencyKind === "Weekly" ? 7 * DAY : DAY;
  return {
    id: chargingProfileId ?? id ?? 0,
    connector: Number(payload["connectorId"] ?? payload["evseId"] ?? 0),
    purpose,
    stackLevel,
    token: tokenIn(payload),
    from: read.data.validFrom,
    to: read.data.validTo,
    repeats: kind === "Recurring" ? recurring : null,
    schedules: read.data.chargingSchedule.map((each) =>
      kind === "Relative" ? { ...each, begin: null } : each,
    ),
  };
}

/** The token that a remote start names, as an identity has it. Null: none. */
function tokenIn({ idTag, idToken }: Payload): string | null {
  const named = isObject(idToken) ? idToken["idToken"] : idTag;
  return typeof named === "string" ? (identityOf(named)?.value ?? null) : null;
}

/** The same CALL with a stack level of at most `most`, where it names a higher one. */
export function withStackLevel(call: Call, most: number): Call {
  for (const member of ["csChargingProfiles", "chargingProfile", "chargingProfileCriteria"]) {
    const inner = call.payload[member];
    if (isObject(inner) && isAbove(inner, most))
      return { ...call, payload: { ...call.payload, [member]: { ...inner, stackLevel: most } } };
  }
  return isAbove(call.payload, most) ? { ...call, payload: { ...call.payload, stackLevel: most } } : call;
}

const isObject = (value: unknown): value is Payload => typeof value === "object" && value !== null;
const isAbove = (payload: Payload, most: number): boolean => Number(payload["stackLevel"] ?? -1) > most;

const criteria = z.object({
  id: z.number().nullish(),
  connectorId: z.number().nullish(),
  evseId: z.number().nullish(),
  chargingProfileId: z.number().nullish(),
  chargingProfilePurpose: z.string().nullish(),
  stackLevel: z.number().nullish(),
});

/** The profiles that are left after a ClearChargingProfile. An id wins over all other members. */
export function cleared(all: readonly ForeignProfile[], payload: Payload): readonly ForeignProfile[] {
  const inner = payload["chargingProfileCriteria"];
  const read = criteria.safeParse(isObject(inner) ? { ...payload, ...inner } : payload);
  if (!read.success) return all;
  const { connectorId, evseId, chargingProfilePurpose, stackLevel } = read.data;
  const id = read.data.id ?? read.data.chargingProfileId ?? null;
  const connector = connectorId ?? evseId ?? null;
  return all.filter((each) => {
    if (id !== null) return each.id !== id;
    const isMeant =
      (connector === null || each.connector === connector) &&
      (typeof chargingProfilePurpose !== "string" || each.purpose === PURPOSES[chargingProfilePurpose]) &&
      (typeof stackLevel !== "number" || each.stackLevel === stackLevel);
    return !isMeant;
  });
}

/** The profiles after one was accepted. One of the same id, or of the same place and level, is replaced. */
export const withProfile = (
  all: readonly ForeignProfile[],
  added: ForeignProfile,
): readonly ForeignProfile[] => [
  ...all.filter(
    (each) =>
      each.id !== added.id &&
      !(
        each.purpose === added.purpose &&
        each.connector === added.connector &&
        each.stackLevel === added.stackLevel
      ),
  ),
  added,
];

/**
 * Lowest limit that profiles of one purpose set from `from` to `until`. Of those that hold at a time the highest stack
 * level wins. Null: none holds.
 */
export function lowestOf(
  all: readonly ForeignProfile[],
  { from, until }: { readonly from: number; readonly until: number },
  toAmperes: ToAmperes,
): number | null {
  const times = [from, ...all.flatMap((each) => changesOf(each, from))];
  const limits = times
    .filter((at) => at >= from && at < until)
    .flatMap((at) => {
      const holding = all.flatMap((each) => {
        const limit = limitAt(each, at, toAmperes);
        return limit === null ? [] : [{ limit, stackLevel: each.stackLevel }];
      });
      const highest = Math.max(...holding.map(({ stackLevel }) => stackLevel));
      return holding.filter(({ stackLevel }) => stackLevel === highest).map(({ limit }) => limit);
    });
  return limits.length === 0 ? null : Math.min(...limits);
}

/** Begin of a schedule that holds at a time, or would. */
const startAt = (begin: number, repeats: number | null, at: number): number =>
  repeats === null ? begin : begin + Math.floor((at - begin) / repeats) * repeats;

function limitAt({ from, to, repeats, schedules }: ForeignProfile, at: number, toAmperes: ToAmperes) {
  if ((from !== null && at < from) || (to !== null && at >= to)) return null;
  const limits = schedules.flatMap(({ begin, lasts, unit, periods }) => {
    // A relative schedule begins with the session. Its lowest limit is on the safe side.
    if (begin === null) return periods.map(({ limit }) => toAmperes(limit, unit));
    const elapsed = at - startAt(begin, repeats, at);
    if (lasts !== null && elapsed >= lasts) return [];
    const period = periods.findLast((each) => each.from <= elapsed);
    return period === undefined ? [] : [toAmperes(period.limit, unit)];
  });
  return limits.length === 0 ? null : Math.min(...limits);
}

/** Times after `at` at which the limit of a profile may change. */
function changesOf({ from, to, repeats, schedules }: ForeignProfile, at: number): readonly number[] {
  const ofSchedules = schedules.flatMap(({ begin, lasts, periods }) => {
    if (begin === null) return [];
    const start = startAt(begin, repeats, at);
    const offsets = [...periods.map((period) => period.from), lasts ?? 0];
    return offsets.flatMap((offset) => [start + offset, start + (repeats ?? 0) + offset]);
  });
  return [from ?? at, to ?? at, ...ofSchedules];
}
