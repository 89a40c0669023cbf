import { IANAZone, DateTime } from "luxon";

import { type Instant, after, iso, minutes, instant } from "../domain/units.ts";

/** No zone changes its offset but at a multiple of this. */
const STEP = minutes(15);
/** Enough for all boundaries of a busy week; then it starts over. */
const MOST_REMEMBERED = 1_000;

/** Moments in the site's zone: the time of day, with the date where that is not today's. */
export function wallClock(zone: string, now: () => Instant): WallClock {
  const rules = IANAZone.create(zone);
  // A decision for each of 20,000 vehicles names two moments: asking the zone's rules each time would be most of its cost.
  const remembered = new Map<number, number>();
  const local = (at: Instant): string => {
    const step = Math.floor(at / STEP);
    let offset = remembered.get(step);
    if (offset === undefined) {
      offset = rules.offset(at);
      if (remembered.size >= MOST_REMEMBERED) remembered.clear();
      remembered.set(step, offset);
    }
    return iso(after(at, minutes(offset)));
  };
  return (at) => {
    const [moment, today] = [local(at), local(now())];
    const [day, time] = [moment.slice(0, 10), moment.slice(11, 19)];
    return today.startsWith(day) ? time : `${day} ${time}`;
  };
}

/** Days of a zone: the same time of day, whatever its clocks did in between. */
export const siteCalendar =
  (zone: string): Calendar =>
  (at, days) => {
    const day = DateTime.fromMillis(at, { zone }).minus({ days });
    return { at: instant(day.toMillis()), weekday: day.weekday };
  };

/** A moment as the people on site read it; the zone is the site's. */
export type WallClock = (at: Instant) => string;

/** The same time of day that many days earlier in the site's zone, and that day's weekday: 1 is Monday. */
export type Calendar = (at: Instant, days: number) => { readonly at: Instant; readonly weekday: number };
