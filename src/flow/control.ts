import {
  concatMap,
  exhaustMap,
  groupBy,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  range,
  Subject,
  tap,
} from "rxjs";

import type { Depot } from "../core/depot.ts";
import type { ChargerMessage } from "../core/site/telemetry.ts";
import type { ChargerId } from "../core/units.ts";
import { alarm } from "./alarm.ts";
import type { Arrival, ControlPorts, Freeing, Touch } from "./ports.ts";
import { stagesOf } from "./stages.ts";
import { inTurns, turnEnd$ } from "./turn.ts";

export interface ControlSources {
  readonly webhook$: Observable<Arrival>;
  readonly polled$: Observable<Arrival>;
  readonly charger$: Observable<ChargerMessage>;
  /** This broker ("": the site's own) is there again: what holds now is sent to its chargers, at most one message each. */
  readonly brokerUp$: Observable<string>;
  /** The partner was asked once, or ten seconds have passed: from now on new starts may happen. */
  readonly startsAllowed$: Observable<unknown>;
  /** Chargers that an operator frees. */
  readonly freed$: Observable<Freeing>;
  /** A charger that commissioning has done with: what it was told before is lost on it. */
  readonly handedBack$: Observable<ChargerId>;
}

/** How many publishes are on their way at once to one broker; a broker that wants fewer is obeyed by its session. */
const WINDOW = 20;

/**
 * The whole of control: what arrives is taken in and committed, in order; what is touched by it, by time, or by a
 * charger's return is looked at, and the difference between what should hold and what was told last goes out.
 */
export function control(depot: Depot, sources: ControlSources, ports: ControlPorts): Observable<unknown> {
  const stages = stagesOf(depot, ports);
  const looked$ = new Subject<void>();
  const behind$ = new Subject<void>();

  const touched$ = merge(sources.webhook$, sources.polled$).pipe(
    inTurns(),
    map((arrivals) => stages.take(arrivals)), // intake + expand; the commit is shared with the look that follows
  );
  const boundary$ = alarm(looked$, () => depot.next(), ports.now).pipe(map(() => () => stages.advance()));
  const heard$ = sources.charger$.pipe(map((message) => () => stages.hear(message)));
  const everyone$ = merge(
    of(() => stages.everyone()), // the first look
    sources.brokerUp$.pipe(map((broker) => () => stages.brokerReturned(broker))),
    sources.startsAllowed$.pipe(map(() => () => stages.allowStarts())),
    sources.freed$.pipe(map((freeing) => () => stages.free(freeing))),
    sources.handedBack$.pipe(map((charger) => () => stages.handedBack(charger))),
  );
  const elsewhere$ = merge(boundary$, heard$, everyone$).pipe(
    inTurns(),
    map((turn) => turn.flatMap((stage) => stage())), // at the end of the turn, so that the look shares their commit
  );

  const evaluated$ = merge(
    merge(touched$, elsewhere$).pipe(map((touches: readonly Touch[]) => stages.look(touches))),
    // A large evaluation goes on in the next turn of the loop: what arrived meanwhile is handled first.
    behind$.pipe(
      exhaustMap(() => turnEnd$),
      map(() => stages.lookOn()),
    ),
  );

  return evaluated$.pipe(
    tap(() => {
      looked$.next();
      ports.looked();
    }),
    concatMap((pending) => stages.committed(pending)), // nothing is published before the commit that says why
    tap(() => {
      looked$.next(); // a commit that failed asks for another look soon
      if (stages.isBehind()) behind$.next();
    }),
    mergeMap((waiting) => waiting),
    groupBy(({ broker }) => broker), // a slow broker delays nobody on another
    mergeMap((line$) =>
      line$.pipe(
        mergeMap(({ count }) => range(0, Math.min(count, WINDOW))),
        mergeMap(() => stages.sendWaiting(line$.key), WINDOW), // one in flight per charger; what waits is replaced
      ),
    ),
    tap(() => looked$.next()), // a publish asks for its refresh, or for another try
  );
}
