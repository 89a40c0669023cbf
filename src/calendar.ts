import { DateTime } from "luxon";

import type { Calendar } from "./core/reporting/baseline.ts";
import { instant } from "./core/units.ts";

/** Days of a zone: the same time of day, whatever its clocks did in between. */
export const siteCalendar =
  (zone: string): Calendar =>
  (at, days) => {
    const day = DateTime.fromMillis(at, { zone }).minus({ days });
    return { at: instant(day.toMillis()), weekday: day.weekday };
  };
