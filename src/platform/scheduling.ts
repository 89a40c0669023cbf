import { schedule } from "node-cron";
import {
  filter,
  firstValueFrom,
  type MonoTypeOperatorFunction,
  Observable,
  type Observer,
  type OperatorFunction,
  type Subscriber,
  timer,
} from "rxjs";

import { type Instant, hours } from "../domain/units.ts";
import { delayUntil, LONGEST_TIMER } from "./clock.ts";

/** Takes the values of a source to a flow. A class: thousands of sites share its methods. */
class Follower<In, Out> implements Partial<Observer<In>> {
  readonly #flow: Subscriber<Out>;
  readonly #take: (value: In) => Out;
  readonly #emits: boolean;

  constructor(flow: Subscriber<Out>, take: (value: In) => Out, emits: boolean) {
    this.#flow = flow;
    this.#take = take;
    this.#emits = emits;
  }

  next(value: In): void {
    try {
      const result = this.#take(value);
      if (this.#emits) this.#flow.next(result);
    } catch (error) {
      this.#flow.error(error);
    }
  }

  error(cause: unknown): void {
    this.#flow.error(cause);
  }
}

/** Takes the values of a source to `take`. Errors of both end the flow. */
export const follow = <T>(
  flow: Subscriber<unknown>,
  source$: Observable<T>,
  take: (value: T) => unknown,
): void => flow.add(source$.subscribe(new Follower(flow, take, false)));

/** Emits at the earliest boundary, and at least once per `LONGEST_TIMER`. Each `evaluated$` re-arms it. */
export const wakeUps = (
  evaluated$: Observable<unknown>,
  next: () => Instant | undefined,
  now: () => Instant,
): Observable<Instant> =>
  new Observable((subscriber) => {
    const wake = (): void => subscriber.next(now());
    let armed: NodeJS.Timeout | undefined;
    const arm = (): void => {
      clearTimeout(armed);
      // An evaluation may have added an earlier boundary.
      armed = setTimeout(wake, delayUntil(next(), now()));
    };
    arm();
    // Frequent evaluations re-arm that timer again and again. A clock that was set back must still be noticed.
    const regular = setInterval(wake, LONGEST_TIMER);
    follow(subscriber, evaluated$, arm);
    return () => {
      clearInterval(regular);
      clearTimeout(armed);
    };
  });

/**
 * Runs the work at this interval, ms, and first after `first`; 0 is at once. A round is skipped while the work of an
 * earlier one lasts. `undefined`: there was nothing to wait for.
 */
export const every = (
  interval: number,
  work: () => Promise<unknown> | undefined,
  first = interval,
): Observable<never> =>
  new Observable((subscriber) => {
    let isRunning = false;
    const fail = (error: unknown): void => subscriber.error(error);
    const round = (): void => {
      if (isRunning) return;
      try {
        const running = work();
        isRunning = running !== undefined;
        running?.then(() => (isRunning = false), fail);
      } catch (error) {
        fail(error);
      }
    };
    let timer: NodeJS.Timeout | undefined;
    const begin = (): void => {
      timer = setInterval(round, interval);
      if (first !== interval) round();
    };
    if (first === 0 || first === interval) begin();
    else timer = setTimeout(begin, first);
    // Either kind of timer.
    return () => clearTimeout(timer);
  });

const DAY = hours(24);

/** Emits at once, and then after each day on the wall clock, which may be set, or stand still in a suspend. */
export const daily = (now: () => Instant): Observable<Instant> =>
  new Observable((subscriber) => {
    let last: Instant | null = null;
    const check = (): void => {
      const at = now();
      if (last !== null && Math.abs(at - last) < DAY) return;
      last = at;
      subscriber.next(at);
    };
    const first = setTimeout(check, 0);
    const regular = setInterval(check, LONGEST_TIMER);
    return () => {
      clearTimeout(first);
      clearInterval(regular);
    };
  });

/** Joins a source to a flow. `to`: what the flow emits for a value. Absent: nothing. */
type Join<Out> = <In>(source$: Observable<In>, to?: (value: In) => Out) => void;

/**
 * Flow of several sources that do not end. In a fleet each site has dozens of sources: `merge`, with a `map` for each, takes
 * four times the memory.
 */
export const fanIn = <Out>(joinAll: (join: Join<Out>) => void): Observable<Out> =>
  new Observable((flow) =>
    joinAll((source$, to) => {
      if (to === undefined) follow(flow, source$, ignore);
      else flow.add(source$.subscribe(new Follower(flow, to, true)));
    }),
  );

const ignore = (): void => {};

/** Emits a value once this time, ms, has passed without another value of its key. */
export const afterPause =
  <T>(pause: number, keyOf: (value: T) => string): MonoTypeOperatorFunction<T> =>
  (values$) =>
    new Observable((subscriber) => {
      const pausing = new Map<string, NodeJS.Timeout>();
      follow(subscriber, values$, (value) => {
        const key = keyOf(value);
        clearTimeout(pausing.get(key));
        const emit = (): void => {
          pausing.delete(key);
          subscriber.next(value);
        };
        pausing.set(key, setTimeout(emit, pause));
      });
      return () => {
        for (const timer of pausing.values()) clearTimeout(timer);
      };
    });

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
    new Observable((subscriber) => {
      let batch: T[] = [];
      let isLast = false;
      let scheduled: NodeJS.Immediate | undefined;
      const emit = (): void => {
        const values = batch;
        batch = [];
        subscriber.next(values);
        if (isLast && batch.length === 0) subscriber.complete();
      };
      subscriber.add(
        values$.subscribe({
          next: (value) => {
            if (batch.push(value) === 1) scheduled = setImmediate(emit);
          },
          error: (error) => subscriber.error(error),
          complete: () => {
            isLast = true;
            if (batch.length === 0) subscriber.complete();
          },
        }),
      );
      return () => clearImmediate(scheduled);
    });

/** Resolves once the condition holds. It is checked at once, then every `everyMs`. */
export async function until(condition: () => boolean, everyMs: number): Promise<void> {
  await firstValueFrom(timer(0, everyMs).pipe(filter(condition)));
}

/** Resolves after this time, ms. */
export async function elapsed(ms: number): Promise<void> {
  await firstValueFrom(timer(ms));
}
