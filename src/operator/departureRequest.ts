import * as z from "zod";

import type { ControlState } from "../control/state.ts";
import { AT, MOST_MISTAKES, placeOf, type readDepartures, wholeWh } from "../departures/csv.ts";
import type { Json } from "../domain/audit.ts";
import type { Need, SetDeparture } from "../domain/departure.ts";
import { type Instant, iso, type VehicleId, vehicleId } from "../domain/units.ts";
import type { Vehicle } from "../domain/vehicle.ts";
import type { TimeOfDay } from "../platform/clock.ts";
import { sanitizeForLog } from "../platform/text.ts";
import { type Answer, asJson, type InputError, invalid, momentIn, unknownMembers } from "./answer.ts";

/** The body of `PUT departures/VEHICLE`. */
export const departureSchema = z.strictObject({
  at: z.string().describe(AT),
  energyWh: z
    .number()
    .positive()
    .max(10_000_000)
    .exactOptional()
    .describe("Energy since the plug-in. This or soc."),
  soc: z.number().min(1).max(100).exactOptional().describe("State of charge in percent. This or energyWh."),
});

const EXPECTED = {
  at: AT,
  energyWh: "Wh, more than 0, e.g. 18000; either this or soc",
  soc: "percent from 1 to 100, e.g. 80; either this or energyWh",
} as const;

/** Farthest departure that may be set, in days. */
const FARTHEST = 31;
const DAY_MS = 86_400_000;
/** The site may have another zone than the person who writes: a moment without one is not used. */
const WITH_ZONE = /(Z|[+-]\d{2}:\d{2})$/;
/** Checks the body of a departure. Every mistake is answered with its path. */
export function bodyIn(
  body: unknown,
  timeOfDay: TimeOfDay,
  now: Instant,
): Answer<Json> | { readonly at: Instant; readonly need: Need } {
  const given = (typeof body === "object" && body !== null ? body : {}) as Readonly<Record<string, unknown>>;
  const mistakes: InputError[] = [...unknownMembers(given, EXPECTED)];
  const at = typeof given["at"] === "string" ? departureAt(given["at"], timeOfDay, now) : AT;
  if (typeof at === "string") mistakes.push({ path: "at", found: asJson(given["at"]), expected: at });
  const { energyWh, soc } = given;
  for (const name of ["energyWh", "soc"] as const)
    if (given[name] !== undefined && !departureSchema.shape[name].safeParse(given[name]).success)
      mistakes.push({ path: name, found: asJson(given[name]), expected: EXPECTED[name] });
  if ((energyWh === undefined) === (soc === undefined))
    mistakes.push({ path: "energyWh", found: asJson(energyWh), expected: "exactly one of energyWh and soc" });
  if (mistakes.length > 0 || typeof at === "string") return invalid(...mistakes);
  const need: Need =
    energyWh === undefined
      ? { kind: "soc", percent: Number(soc) }
      : { kind: "energy", wh: wholeWh(Number(energyWh)) };
  return { at, need };
}

/** A moment, or a time of day: the next one in the site's zone. A string: what is expected instead. */
function departureAt(text: string, timeOfDay: TimeOfDay, now: Instant): Instant | string {
  const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text.trim()) ?? [];
  if (hour !== undefined) {
    const [today, tomorrow] = [0, 1].map((days) => timeOfDay(now, days, Number(hour), Number(minute)).at);
    return today !== undefined && today > now ? today : (tomorrow ?? AT);
  }
  const at = WITH_ZONE.test(text.trim()) ? momentIn(text.trim()) : null;
  if (at === null) return AT;
  if (at > now && at <= now + FARTHEST * DAY_MS) return at;
  return `later than ${iso(now)}, and at most ${FARTHEST} days ahead`;
}

/** The departures of a file, by vehicle. Mistakes refuse the whole file. */
export function resolved(
  state: ControlState,
  { departures, mistakes: unreadable }: ReturnType<typeof readDepartures>,
  { by, timeOfDay, now }: { readonly by: string; readonly timeOfDay: TimeOfDay; readonly now: Instant },
): Answer<Json> | Map<VehicleId, SetDeparture[]> {
  const mistakes: InputError[] = [...unreadable];
  const found = new Map<VehicleId, SetDeparture[]>();
  const byName = namesOf(state);
  for (const { line, vehicle: name, at: text, need } of departures) {
    const vehicle = state.vehicles.get(vehicleId(name)) ?? byName.get(name.toLowerCase()) ?? null;
    const at = departureAt(text, timeOfDay, now);
    if (vehicle === null)
      mistakes.push({
        path: placeOf(line, "vehicle"),
        found: sanitizeForLog(name),
        expected: "the id or name of a vehicle of the configuration",
      });
    if (typeof at === "string")
      mistakes.push({ path: placeOf(line, "at"), found: sanitizeForLog(text), expected: at });
    if (vehicle === null || typeof at === "string") continue;
    const set = found.get(vehicle.id) ?? [];
    if (set.some((other) => other.at === at))
      mistakes.push({
        path: placeOf(line, "at"),
        found: text,
        expected: `one line for ${vehicle.id} at this time`,
      });
    set.push({ vehicle: vehicle.id, at, need, source: "csv", by, setAt: now });
    found.set(vehicle.id, set);
  }
  return mistakes.length === 0 ? found : invalid(...mistakes.slice(0, MOST_MISTAKES));
}

/** Vehicles by their name in lower case. A name that several have is none. */
function namesOf({ vehicles }: ControlState): ReadonlyMap<string, Vehicle | null> {
  const names = new Map<string, Vehicle | null>();
  for (const vehicle of vehicles.values()) {
    const name = vehicle.name.toLowerCase();
    names.set(name, names.has(name) ? null : vehicle);
  }
  return names;
}
