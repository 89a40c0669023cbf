import { schedule } from "node-cron";
import {
  buffer,
  connect,
  distinctUntilChanged,
  exhaustMap,
  filter,
  firstValueFrom,
  interval,
  map,
  merge,
  Observable,
  type OperatorFunction,
  startWith,
  switchMap,
  timer,
} from "rxjs";

import { between, type Instant, type Millis, millis, seconds, minutes } from "../domain/units.ts";

/** Timers beyond 2^31-1 ms fire at once, and long ones miss a stepped wall clock: never sleep longer than this. */
const LONGEST_NAP = seconds(60);

export const delayUntil = (due: Instant | undefined, now: Instant): Millis =>
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
      switchMap(() => timer(delayUntil(next(), now()))),
    ),
  ).pipe(map(now));

/** A day-long timer would sleep through a clock that is set, or a machine that was suspended. */
const LONGEST_DELAY = seconds(60);
const DAY = minutes(24 * 60);

/** At once, and whenever a day has passed on the wall clock since the last time. */
export const daily = (now: () => Instant): Observable<Instant> =>
  timer(0, LONGEST_DELAY).pipe(
    map(now),
    distinctUntilChanged((last, at) => Math.abs(at - last) < DAY),
  );

/** For the library, which would write to the console otherwise; what it has to say is in the ticks. */
const SILENT = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };

/**
 * Ticks by a cron expression in a time zone: for housekeeping only, as an hour that a clock change repeats is run
 * once (F25). What was due while the machine slept is one tick each, late.
 */
export const cronTicks = (expression: string, timezone: string): Observable<void> =>
  new Observable((subscriber) => {
    const tick = (): void => subscriber.next();
    const task = schedule(expression, tick, { timezone, logger: SILENT });
    task.on("execution:missed", tick);
    return () => void task.destroy();
  });

/** The end of this turn of the event loop, after the I/O that is ready now. */
export const turnEnd$ = new Observable<void>((subscriber) => {
  const scheduled = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(scheduled);
});

/** Gathers what arrives within one turn of the event loop, so that a burst costs one commit and not one each. */
export const batchPerTick = <T>(): OperatorFunction<T, readonly T[]> =>
  connect((values$) => values$.pipe(buffer(values$.pipe(exhaustMap(() => turnEnd$)))));

/** Resolves once the condition holds. It is checked at once, and then every `everyMs`. */
export async function until(condition: () => boolean, everyMs: number): Promise<void> {
  await firstValueFrom(timer(0, everyMs).pipe(filter(condition)));
}

/** Resolves after this time, ms. */
export async function elapsed(ms: number): Promise<void> {
  await firstValueFrom(timer(ms));
}
