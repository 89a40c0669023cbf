import { IANAZone } from "luxon";

import type { WallClock } from "./core/reason.ts";
import { after, type Instant, iso, minutes } from "./core/units.ts";

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
