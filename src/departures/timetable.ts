import type { Departure, SetDeparture, WeeklyDeparture } from "../domain/departure.ts";
import { after, type Instant, type VehicleId, hours } from "../domain/units.ts";
import type { TimeOfDay } from "../platform/clock.ts";

/** Time for which a departure that was set is kept after it: it still replaces the weekly ones of its day. */
const KEPT = hours(26);

/** True: a departure that was set can neither apply nor replace a weekly one any more. */
export const isForgotten = ({ at }: Pick<SetDeparture, "at">, now: Instant): boolean =>
  after(at, KEPT) <= now;

/**
 * The next departure of a vehicle after `now`. Departures that were set replace the weekly ones of their day, also
 * after they have passed. Null: none.
 */
export function nextDeparture(
  vehicle: VehicleId,
  weekly: readonly WeeklyDeparture[],
  set: readonly SetDeparture[],
  timeOfDay: TimeOfDay,
  now: Instant,
): Departure | null {
  const ahead: Departure[] = set
    .filter(({ at, isSkipped }) => at > now && isSkipped !== true)
    .map(({ at, need, source, by }) => ({ vehicle, at, need, source, by }));
  // A weekly one behind the first that was set is not searched for: a year may be set day by day.
  const first = ahead.reduce((earliest, { at }) => Math.min(earliest, at), Infinity);
  const next = weekly.length === 0 ? null : nextWeekly(weekly, set, timeOfDay, now, first);
  if (next !== null) ahead.push({ vehicle, ...next, source: "weekly", by: null });
  return ahead.toSorted((a, b) => a.at - b.at)[0] ?? null;
}

/** Farthest day that may be skipped. */
const FARTHEST = 31;

/** The last weekly departure ahead on this day of the site, e.g. 2026-11-24. Null: none. */
export function weeklyOn(
  weekly: readonly WeeklyDeparture[],
  day: string,
  timeOfDay: TimeOfDay,
  now: Instant,
): Pick<Departure, "at" | "need"> | null {
  for (let days = 0; days <= FARTHEST; days += 1) {
    const { weekday, date } = timeOfDay(now, days, 0, 0);
    if (date !== day) continue;
    return departuresOn(weekly, weekday, days, timeOfDay, now).at(-1) ?? null;
  }
  return null;
}

/** Weekly departures of a day that are still ahead, the earliest first. `days`: from today. */
const departuresOn = (
  weekly: readonly WeeklyDeparture[],
  weekday: number,
  days: number,
  timeOfDay: TimeOfDay,
  now: Instant,
): readonly Pick<Departure, "at" | "need">[] =>
  weekly
    .filter((entry) => entry.days.includes(weekday))
    .map(({ hour, minute, need }) => ({ at: timeOfDay(now, days, hour, minute).at, need }))
    .filter(({ at }) => at > now)
    .toSorted((a, b) => a.at - b.at);

/** Days to search: a week and the rest of the same weekday, and as many days as may be replaced. */
const DAYS = 9;
/** A moment that lies farther from the midnight of a day is on another day, also where the clock changes. */
const [BEFORE, BEHIND] = [hours(2), hours(27)];

function nextWeekly(
  weekly: readonly WeeklyDeparture[],
  set: readonly SetDeparture[],
  timeOfDay: TimeOfDay,
  now: Instant,
  until: number,
): Pick<Departure, "at" | "need"> | null {
  for (let days = 0; days < DAYS + set.length; days += 1) {
    const { weekday, date, at: midnight } = timeOfDay(now, days, 0, 0);
    if (midnight > until) return null;
    // A calendar costs far more than a number: most are on another day by that alone.
    const isReplaced = set.some(
      ({ at }) => at >= midnight - BEFORE && at < midnight + BEHIND && timeOfDay(at, 0, 0, 0).date === date,
    );
    if (isReplaced) continue;
    const [first] = departuresOn(weekly, weekday, days, timeOfDay, now);
    if (first !== undefined) return first;
  }
  return null;
}
