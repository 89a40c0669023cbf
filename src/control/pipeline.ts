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
  timer,
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
import { afterPause, batchPerTick, every, fanIn, wakeUps } from "../platform/scheduling.ts";
import type { Affected } from "./ingest/ingest.ts";
import type { Arrival, ControlPorts, Freeing } from "./ports.ts";
import { type Pending, type QueuedAtBroker, Stages } from "./stages.ts";
import type { ChangeRequest, Stage } from "./stage.ts";
import type { ControlState } from "./state.ts";

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
  /** Changes of holds, of the mode, of bindings. */
  readonly change$: Observable<ChangeRequest>;
  /** A charger that commissioning has returned. Its last command no longer applies there. */
  readonly unlocked$: Observable<ChargerId>;
}

/** Chargers reconnect to a broker that was away within this time. */
const LATE_RETURN = minutes(1);

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

  const evaluated = (pending: Pending | null): Pending | null => {
    evaluationDone$.next();
    ports.evaluated();
    return pending;
  };
  const committed = (queued: readonly QueuedAtBroker[]): readonly QueuedAtBroker[] => {
    evaluationDone$.next(); // a failed commit schedules another evaluation soon
    if (stages.isBehind()) behind$.next();
    return queued;
  };
  const sent = (): void => evaluationDone$.next(); // a publish schedules its refresh, or another try
  const sendersAt = ({ broker, count }: QueuedAtBroker): readonly Promise<void>[] => {
    const length = Math.min(count, stages.senders.room(broker));
    return Array.from({ length }, () => stages.senders.sendWaiting(broker).then(sent));
  };

  const lateReturn$ = sources.brokerUp$.pipe(
    map((broker) => ({ broker, since: ports.now() })),
    // A broker that returns again within this time starts it anew.
    afterPause(LATE_RETURN, ({ broker }) => broker),
  );
  const arrival$ = fanIn<Arrival>((join) => {
    join(sources.webhook$, (arrival) => arrival);
    join(sources.polled$, (arrival) => arrival);
  });
  const input$ = fanIn<Stage>((join) => {
    const boundary$ = wakeUps(evaluationDone$, () => state.next(), ports.now);
    join(boundary$, () => () => stages.advance());
    join(sources.charger$, (message) => () => stages.handleMessage(message));
    join(of("the first evaluation"), () => () => stages.everyone());
    join(sources.brokerUp$, (broker) => () => stages.brokerReturned(broker));
    join(lateReturn$, (returned) => () => stages.repeatAfterReturn(returned));
    join(sources.startsAllowed$, () => () => stages.allowStarts());
    join(sources.freed$, (freeing) => () => stages.free(freeing));
    join(sources.change$, (request) => () => stages.change(request));
    join(sources.unlocked$, (charger) => () => stages.unlocked(charger));
  });
  // Evaluations run at the end of the tick, so that each shares the commit of what caused it.
  const evaluation$ = fanIn<() => Pending | null | Promise<Pending | null>>((join) => {
    join(arrival$.pipe(batchPerTick()), (arrivals) => evaluateAfter(() => stages.ingest(arrivals)));
    join(input$.pipe(batchPerTick()), (batch) => evaluateAfter(() => stages.run(batch)));
    // A large evaluation continues in the next turn of the event loop, after the input that arrived meanwhile.
    join(behind$.pipe(batchPerTick()), () => () => stages.evaluateNext());
  });

  return evaluation$.pipe(
    // A large delivery takes several turns of the event loop. Everything else waits for it, in order.
    concatMap((stage) => once(whenDone(stage(), evaluated))),
    filter((pending) => pending !== null),
    concatMap((pending) => stages.committed(pending).then(committed)), // no publish before the commit of its reason
    // The brokers bound how many are sent at a time (`room`). A slow broker delays no other.
    mergeMap((queued) => merge(...queued.flatMap(sendersAt))),
  );
}

/** Emits the result of a stage: at once, or when the stage has read what it needs. */
const once = <T>(result: T | Promise<T>): Observable<T> =>
  result instanceof Promise ? from(result) : of(result);

/** A value that is there passes at once: what shares a tick shares a commit. */
const whenDone = <Value, Result>(
  value: Value | Promise<Value>,
  next: (value: Value) => Result,
): Result | Promise<Result> => (value instanceof Promise ? value.then(next) : next(value));

/** Longest wait for the first poll after a start. New events start only after that. */
const FIRST_FETCH_PATIENCE = seconds(10);
/** Longest doubt of a clock that is behind our own last row. The partner's clock may end it sooner. */
const BEHIND_PATIENCE = minutes(5);

/** The doubt in the clock of this machine. No start is sent while it lasts. */
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
  fanIn<unknown>((join) => {
    join(afterFirstFetch(fetched$).pipe(filter(() => !isDoubted())), (fetched) => fetched);
    join(doubted$.pipe(switchMap(() => afterClockAgrees(agrees$))), believe);
  });

/** After an ordinary start: once the first poll has ended, with any answer. */
const afterFirstFetch = (fetched$: Observable<unknown>): Observable<unknown> =>
  merge(fetched$, timer(FIRST_FETCH_PATIENCE)).pipe(take(1));

/** After a doubt of the clock: once the partner's clock agrees with it. */
const afterClockAgrees = (agrees$: Observable<unknown>): Observable<unknown> =>
  merge(agrees$, timer(BEHIND_PATIENCE)).pipe(take(1));

/** Interval of looks at the monotonic clock. */
const LOOK_EVERY = seconds(1);
/** Shorter gaps come from a busy machine. */
const SHORTEST_STANDSTILL = seconds(5);

/**
 * Records that this process stood still: its event loop was blocked, or the process was suspended.
 * Nothing was received or sent meanwhile.
 */
export function standstill({
  now,
  monotonic,
  write,
}: Pick<ControlPorts, "now" | "monotonic" | "write">): Observable<never> {
  let before = monotonic();
  return every(LOOK_EVERY, () => {
    const tick = monotonic();
    const gap = millis(tick - before - LOOK_EVERY);
    before = tick;
    if (gap >= SHORTEST_STANDSTILL) write([standstillRow(gap, now())]);
  });
}

const standstillRow = (gap: Millis, at: Instant) =>
  auditRow(
    "daemon",
    at,
    `setpointd stood still for ${Math.round(gap / 1000)} s: nothing was received or sent meanwhile`,
    { facts: { outage: "setpointd", since: iso(instant(at - gap)), over: true } },
  );
