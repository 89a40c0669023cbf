import { schedule } from "node-cron";
import { Observable } from "rxjs";

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
