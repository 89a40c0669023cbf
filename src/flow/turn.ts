import { buffer, connect, exhaustMap, Observable, type OperatorFunction } from "rxjs";

/** The end of this turn of the event loop, after the I/O that is ready now. */
export const turnEnd$ = new Observable<void>((subscriber) => {
  const scheduled = setImmediate(() => {
    subscriber.next();
    subscriber.complete();
  });
  return () => clearImmediate(scheduled);
});

/** Gathers what arrives within one turn of the event loop, so that a burst costs one commit and not one each. */
export const inTurns = <T>(): OperatorFunction<T, readonly T[]> =>
  connect((values$) => values$.pipe(buffer(values$.pipe(exhaustMap(() => turnEnd$)))));
