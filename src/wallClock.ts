import { DateTime } from "luxon";

import type { WallClock } from "./core/reason.ts";
import type { Instant } from "./core/units.ts";

/** Moments in the site's zone: the time of day, with the date where that is not today's. */
export function wallClock(zone: string, now: () => Instant): WallClock {
  return (at) => {
    const moment = DateTime.fromMillis(at, { zone });
    const today = DateTime.fromMillis(now(), { zone });
    return moment.toFormat(moment.hasSame(today, "day") ? "HH:mm:ss" : "yyyy-MM-dd HH:mm:ss");
  };
}
