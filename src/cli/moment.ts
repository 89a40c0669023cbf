import { DateTime } from "luxon";

import { type Instant, instant } from "../core/units.ts";

/** Accepted forms of a moment on the command line, for error messages. */
export const MOMENT =
  "ISO 8601, e.g. 2026-11-21T05:30 or 05:30 (today) in the site's zone, or with a zone of its own";

/** A moment as a person types it. Without a zone it is in the site's zone; a time alone is today's. Null: not a moment. */
export function readMoment(text: string, zone: string, now: Instant): Instant | null {
  // A time alone takes the current date, which the library would read from the machine's clock.
  const isTime = /^\d{1,2}:\d{2}(:\d{2})?$/.test(text);
  const today = DateTime.fromMillis(now, { zone }).toISODate() ?? "";
  const read = DateTime.fromISO(isTime ? `${today}T${text.padStart(5, "0")}` : text, { zone });
  return read.isValid ? instant(read.toMillis()) : null;
}
