import {
  concatMap,
  filter,
  from,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  switchMap,
  take,
  tap,
  timer,
  interval,
  exhaustMap,
  groupBy,
  range,
} from "rxjs";

import { auditRow } from "../domain/audit.ts";
import type { ChargerMessage } from "../domain/telemetry.ts";
import {
  type Instant,
  type Millis,
  minutes,
  seconds,
  instant,
  iso,
  millis,
  type ChargerId,
} from "../domain/units.ts";
import { alarm, batchPerTick, tickEnd$ } from "../platform/scheduling.ts";
import type { Affected } from "./ingest/ingest.ts";
import type { HoldRequest } from "./holds/lifecycle.ts";
import type { ModeRequest } from "./holds/observePeriod.ts";
import type { Arrival, ControlPorts, Freeing } from "./ports.ts";
import { Stages } from "./stages.ts";
import type { ControlState } from "./state.ts";

/** Longest wait for the first poll after a start. New events start only after that. */
const FIRST_FETCH_PATIENCE = seconds(10);
/** Longest doubt of a clock that is behind our own last row. The partner's clock may end it sooner. */
const BEHIND_PATIENCE = minutes(5);

export interface Doubt {
  readonly isDoubted: () => boolean;
  /** Emits when the clock of this machine is behind our own record. */
  readonly doubted$: Observable<unknown>;
  /** Emits when the partner's clock agrees with ours. */
  readonly agrees$: Observable<unknown>;
  /** Ends the doubt: the partner's clock agrees, or the longest doubt has passed. */
  readonly believe: () => void;
}

/** Emits each time that new starts become allowed: after the start, and after each doubt of the clock. */
export const startsAllowed = (
  fetched$: Observable<unknown>,
  { isDoubted, doubted$, agrees$, believe }: Doubt,
): Observable<unknown> =>
  merge(
    afterFirstFetch(fetched$).pipe(filter(() => !isDoubted())),
    doubted$.pipe(
      switchMap(() => afterClockAgrees(agrees$)),
      tap(believe),
    ),
  );

/** After an ordinary start: once the first poll has ended, with any answer. */
const afterFirstFetch = (fetched$: Observable<unknown>): Observable<unknown> =>
  merge(fetched$, timer(FIRST_FETCH_PATIENCE)).pipe(take(1));

/** After a doubt of the clock: once the partner's clock agrees with it. */
const afterClockAgrees = (agrees$: Observable<unknown>): Observable<unknown> =>
  merge(agrees$, timer(BEHIND_PATIENCE)).pipe(take(1));

const CHECK_EVERY = seconds(1);
/** Shorter gaps come from a busy machine. */
const SHORTEST = seconds(5);

/**
 * Records that this process stood still: its event loop was blocked, or the process was suspended.
 * Nothing was received or sent meanwhile. Emits the length.
 */
export function standstill({
  now,
  monotonic,
  write,
}: Pick<ControlPorts, "now" | "monotonic" | "write">): Observable<Millis> {
  let before = monotonic();
  return interval(CHECK_EVERY).pipe(
    map(() => {
      const tick = monotonic();
      const gap = millis(tick - before - CHECK_EVERY);
      before = tick;
      return gap;
    }),
    filter((gap) => gap >= SHORTEST),
    tap((gap) => write([row(gap, now())])),
  );
}

const row = (gap: Millis, at: Instant) =>
  auditRow(
    "daemon",
    at,
    `setpointd stood still for ${Math.round(gap / 1000)} s: nothing was received or sent meanwhile`,
    { facts: { outage: "setpointd", since: iso(instant(at - gap)), over: true } },
  );

export interface ControlSources {
  readonly webhook$: Observable<Arrival>;
  readonly polled$: Observable<Arrival>;
  readonly charger$: Observable<ChargerMessage>;
  /** A broker that is back ("": the site's own). Each of its chargers is sent its command again. */
  readonly brokerUp$: Observable<string>;
  /** Emits when new starts become allowed. */
  readonly startsAllowed$: Observable<unknown>;
  /** Chargers that an operator frees. */
  readonly freed$: Observable<Freeing>;
  readonly hold$: Observable<HoldRequest>;
  readonly mode$: Observable<ModeRequest>;
  /** A charger that commissioning has returned. Its last command no longer applies there. */
  readonly unlocked$: Observable<ChargerId>;
}

/** Emits the result of a stage: at once, or when the stage has read what it needs. */
const once = <T>(result: T | Promise<T>): Observable<T> =>
  result instanceof Promise ? from(result) : of(result);

/** Chargers reconnect to a broker that was away within this time. */
const LATE_RETURN = minutes(1);
/** Cap on publishes in flight to one broker. `ControlPorts.windowOf` is the cap now. */
const WIDEST = 500;

/** At once where the value is there: what shares a tick shares a commit. */
const whenDone = <Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result,
): Result | Promise<Result> => (value instanceof Promise ? value.then(next) : next(value));

/**
 * The whole of control. Deliveries are ingested and committed in order.
 * Chargers that a delivery, a moment or a return affects are evaluated.
 * The difference between verdict and last command is published.
 */
export function control(
  state: ControlState,
  sources: ControlSources,
  ports: ControlPorts,
): Observable<unknown> {
  const stages = new Stages(state, ports);
  const evaluationDone$ = new Subject<void>();
  const behind$ = new Subject<void>();

  const evaluateAfter = (stage: () => Affected) => () =>
    whenDone(stage(), (affected) => stages.evaluate(affected));

  const ingested$ = merge(sources.webhook$, sources.polled$).pipe(
    batchPerTick(),
    map((arrivals) => evaluateAfter(() => stages.ingest(arrivals))), // intake and expansion; the evaluation that follows shares the commit
  );
  const boundary$ = alarm(evaluationDone$, () => state.next(), ports.now).pipe(
    map(() => () => stages.advance()),
  );
  const messages$ = sources.charger$.pipe(map((message) => () => stages.handleMessage(message)));
  // A single list of inputs: each further merge costs memory, for each site of a fleet.
  const other$ = merge(
    boundary$,
    messages$,
    of(() => stages.everyone()), // the first evaluation
    sources.brokerUp$.pipe(map((broker) => () => stages.brokerReturned(broker))),
    sources.brokerUp$.pipe(
      map((broker) => ({ broker, since: ports.now() })),
      groupBy(({ broker }) => broker),
      // A broker that returns again within this time starts it anew.
      mergeMap((returns$) => returns$.pipe(switchMap((back) => timer(LATE_RETURN).pipe(map(() => back))))),
      map(
        ({ broker, since }) =>
          () =>
            stages.repeatAfterReturn(broker, since),
      ),
    ),
    sources.startsAllowed$.pipe(map(() => () => stages.allowStarts())),
    sources.freed$.pipe(map((freeing) => () => stages.free(freeing))),
    sources.hold$.pipe(map((request) => () => stages.hold(request))),
    sources.mode$.pipe(map((request) => () => stages.mode(request))),
    sources.unlocked$.pipe(map((charger) => () => stages.unlocked(charger))),
  ).pipe(
    batchPerTick(),
    map((batch) => evaluateAfter(() => stages.run(batch))), // at the end of the tick, so that the evaluation shares the commit
  );

  const evaluated$ = merge(
    ingested$,
    other$,
    // A large evaluation continues in the next turn of the event loop, after the input that arrived
    // meanwhile.
    behind$.pipe(
      exhaustMap(() => tickEnd$),
      map(() => () => stages.evaluateNext()),
    ),
  ).pipe(
    // A large delivery takes several turns of the event loop. Everything else waits for it, in order.
    concatMap((stage) => once(stage())),
  );

  return evaluated$.pipe(
    tap(() => {
      evaluationDone$.next();
      ports.evaluated();
    }),
    concatMap((pending) => stages.committed(pending)), // no publish before the commit of its reason
    tap(() => {
      evaluationDone$.next(); // a failed commit schedules another evaluation soon
      if (stages.isBehind()) behind$.next();
    }),
    mergeMap((waiting) => waiting),
    groupBy(({ broker }) => broker), // a slow broker delays no other
    mergeMap((line$) =>
      line$.pipe(
        mergeMap(({ count }) => range(0, Math.min(count, stages.room(line$.key)))),
        mergeMap(() => stages.sendWaiting(line$.key), WIDEST), // one in flight per charger; a waiting command is replaced
      ),
    ),
    tap(() => evaluationDone$.next()), // a publish schedules its refresh, or another try
  );
}
