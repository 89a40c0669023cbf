import { interval, map, merge, type Observable, startWith, switchMap, timer } from "rxjs";

import { between, type Instant, type Millis, millis, seconds } from "../core/units.ts";

/** Timers beyond 2^31-1 ms fire at once, and long ones miss a stepped wall clock: never sleep longer than this. */
const LONGEST_NAP = seconds(60);

export const nap = (due: Instant | undefined, now: Instant): Millis =>
  due === undefined ? LONGEST_NAP : millis(Math.min(Math.max(between(now, due), 0), LONGEST_NAP));

/** One alarm for the earliest boundary. It rings once; whoever has looked arms it again. */
export const alarm = (
  looked$: Observable<unknown>,
  next: () => Instant | undefined,
  now: () => Instant,
): Observable<Instant> =>
  merge(
    // Looks that come often put the nap off for ever: a clock that was set back must show all the same.
    interval(LONGEST_NAP),
    looked$.pipe(
      startWith(undefined),
      // A look may have brought something earlier: the old nap is forgotten.
      switchMap(() => timer(nap(next(), now()))),
    ),
  ).pipe(map(now));
