import { distinctUntilChanged, map, type Observable, timer } from "rxjs";

import { type Instant, minutes, seconds } from "../core/units.ts";

/** A day-long timer would sleep through a clock that is set, or a machine that was suspended. */
const NAP = seconds(60);
const DAY = minutes(24 * 60);

/** At once, and whenever a day has passed on the wall clock since the last time. */
export const daily = (now: () => Instant): Observable<Instant> =>
  timer(0, NAP).pipe(
    map(now),
    distinctUntilChanged((last, at) => Math.abs(at - last) < DAY),
  );
