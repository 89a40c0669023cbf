import { schedule } from "node-cron";
import {
  defer,
  distinctUntilChanged,
  filter,
  firstValueFrom,
  interval,
  map,
  merge,
  mergeMap,
  Observable,
  type OperatorFunction,
  startWith,
  switchMap,
  timer,
} from "rxjs";

import { type Instant, minutes } from "../domain/units.ts";
import { delayUntil, LONGEST_TIMER } from "./clock.ts";

/** Emits at the earliest boundary, and at least once per `LONGEST_TIMER`. Each `evaluated$` re-arms it. */
export const alarm = (
  evaluated$: Observable<unknown>,
  next: () => Instant | undefined,
  now: () => Instant,
): Observable<Instant> =>
  merge(
    // Frequent evaluations restart the timer below again and again. A clock that was set back must still be noticed.
    interval(LONGEST_TIMER),
    evaluated$.pipe(
      startWith(undefined),
      // An evaluation may have added an earlier boundary.
      switchMap(() => timer(delayUntil(next(), now()))),
    ),
  ).pipe(map(now));

const DAY = minutes(24 * 60);

/** Emits at once, and then after each day on the wall clock, which may be set, or stand still in a suspend. */
export const daily = (now: () => Instant): Observable<Instant> =>
  timer(0, LONGEST_TIMER).pipe(
    map(now),
    distinctUntilChanged((last, at) => Math.abs(at - last) < DAY),
  );

/** Silences node-cron, which would write to the console. Its events carry all that is needed. */
const SILENT = { info: () => {}, warn: () => {}, error: () => {}, debug: () => {} };

/**
 * Emits by a cron expression in a time zone. For housekeeping only: an hour that a clock change repeats runs once.
 * Executions missed during a suspend are emitted late, one each.
 */
export const cronTicks = (expression: string, timezone: string): Observable<void> =>
  new Observable((subscriber) => {
    const tick = (): void => subscriber.next();
    const task = schedule(expression, tick, { timezone, logger: SILENT });
    task.on("execution:missed", tick);
    return () => void task.destroy();
  });

/** End of this event-loop tick, after I/O that is ready now. */
export const tickEnd$ = new Observable<void>((subscriber) => {
  const scheduled = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(scheduled);
});

/** Batches the values of one event-loop tick, so that a burst costs one commit. */
export const batchPerTick =
  <T>(): OperatorFunction<T, readonly T[]> =>
  (values$) =>
    // Two operators: a process of a fleet has several of these for each of its sites.
    defer(() => {
      let batch: T[] = [];
      const isFirst = (value: T): boolean => batch.push(value) === 1;
      const whole = (): readonly T[] => {
        const values = batch;
        batch = [];
        return values;
      };
      return values$.pipe(
        filter(isFirst),
        mergeMap(() => tickEnd$.pipe(map(whole))),
      );
    });

/** Resolves once the condition holds. It is checked at once, then every `everyMs`. */
export async function until(condition: () => boolean, everyMs: number): Promise<void> {
  await firstValueFrom(timer(0, everyMs).pipe(filter(condition)));
}

/** Resolves after this time, ms. */
export async function elapsed(ms: number): Promise<void> {
  await firstValueFrom(timer(ms));
}
